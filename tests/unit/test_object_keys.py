"""Keys: one meaning each, whatever the names, and back from keys to names."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_archiver.model import object_keys
from kafka_archiver.model.layouts.hourly import dead_letter_prefix, hour_path, parse_hour_path
from kafka_archiver.model.object_keys import decode, encode, hour_document, object_key
from kafka_archiver.values.intervals import LAST_MS, MS_PER_HOUR, run_id

pytestmark = pytest.mark.unit

LAST_HOUR = LAST_MS // MS_PER_HOUR
hours = st.none() | st.integers(0, LAST_HOUR)
# Names made to collide: of separators, escapes and reserved words, and any text at all.
names = (
    st.text("ab/%+._- =25", min_size=1, max_size=6)
    | st.sampled_from(["_ledger", "_dead_letter", ".", "..", "%5Fledger", "a-b", "a_b", "A", "ü", "u\u0308", "runs"])
    | st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
)


class Place(NamedTuple):
    """All that an object's key stands for."""

    topic: str
    hour: int | None
    partition: int
    chunk_start: int
    generation: int
    revision: int = 0
    dead_letter: bool = False
    schemas: str = ""

    @property
    def name(self) -> object_keys.ObjectName:
        return object_keys.ObjectName(self.topic, self.partition, self.chunk_start, self.generation, self.revision)

    @property
    def key(self) -> str:
        return object_key(self.name, hour_path(self.hour), ".jsonl.gz", self.dead_letter, self.schemas)


few = st.integers(0, 2)
places = st.builds(
    Place,
    names,
    st.none() | few,
    few | st.integers(0, 2**31 - 1),
    few | st.integers(0, 2**63 - 1),
    few,
    few,
    st.booleans(),
    st.sampled_from(["", "+k1", "+s1", "+s11", "+k1+s1"]),
)


@given(names)
def test_a_name_comes_back_from_its_segment(name: str) -> None:
    assert decode(encode(name)) == name


@given(names, names)
@example("_ledger", "%5Fledger")
@example("a/b", "a%2Fb")
@example(".", "%2E")
def test_two_names_never_have_one_segment(left: str, right: str) -> None:
    assert (encode(left) == encode(right)) == (left == right)


@given(names)
def test_a_segment_is_plain_ascii_and_none_that_the_store_or_a_path_uses(name: str) -> None:
    segment = encode(name)
    assert set(segment) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-~%")
    assert segment not in (object_keys.LEDGER, object_keys.DEAD_LETTER, ".", "..")


@given(places, places)
def test_two_places_never_have_one_key(left: Place, right: Place) -> None:
    assert (left.key == right.key) == (left == right)


@given(places)
def test_a_place_comes_back_from_its_key(place: Place) -> None:
    assert object_keys.split_object_key(place.key) == place.name
    assert object_keys.is_dead_letter(place.key) == place.dead_letter
    folder = object_keys.topic_prefix(place.topic, place.dead_letter)
    assert place.key.startswith(folder)
    assert parse_hour_path(place.key.removeprefix(folder).rsplit("/", 1)[0]) == place.hour
    assert place.key.startswith(dead_letter_prefix(place.topic, place.hour)) == place.dead_letter


@given(st.datetimes(timezones=st.just(UTC)), st.integers(0, 99))
def test_a_run_comes_back_from_its_name(start: datetime, revision: int) -> None:
    start = start.replace(microsecond=0)
    run = object_keys.run_name(run_id(start), revision)
    assert object_keys.split_run(run) == (start, revision)
    assert object_keys.split_run_document("a", object_keys.run_document("a", run, "plan")) == (run, "plan")


@pytest.mark.parametrize("run", ["", "20261121T050000Z+r0", "20261121T050000Z+r01", "20261121T050000Z+1", "+r1"])
def test_what_is_no_run_is_refused(run: str) -> None:
    with pytest.raises(ValueError, match=r"name of a run|does not match"):
        object_keys.split_run(run)


@given(places, names)
def test_data_is_never_where_the_ledger_is(place: Place, archive: str) -> None:
    assert not place.key.startswith(f"{object_keys.LEDGER}/")
    assert place.key.startswith(f"{object_keys.DEAD_LETTER}/") == place.dead_letter
    assert object_keys.split_run_document(archive, place.key) is None
    assert object_keys.split_hour_document(archive, place.key) is None
    assert object_keys.split_line_document(archive, place.key) is None


def test_an_object_s_key_is_as_documented() -> None:
    place = Place("orders", 498_677, 7, 1_000_000, 0)
    assert place.key == "orders/date=2026-11-21/hour=05/orders+7+00000000000001000000.jsonl.gz"
    assert place._replace(generation=2).key.endswith("/orders+7+00000000000001000000+g2.jsonl.gz")
    assert place._replace(generation=2, revision=1).key.endswith("/orders+7+00000000000001000000+g2+r1.jsonl.gz")
    assert place._replace(revision=1, schemas="+k3+s7").key.endswith("/orders+7+00000000000001000000+r1+k3+s7.jsonl.gz")
    assert place._replace(dead_letter=True).key == f"_dead_letter/{place.key}"


@pytest.mark.parametrize("key", ["", "orders", "o+1.jsonl", "a/o+1+2.jsonl", "o+x+00000000000000000000.jsonl"])
def test_a_key_of_another_form_is_no_object(key: str) -> None:
    assert object_keys.split_object_key(key) is None


@given(hours, st.none() | st.integers(0, 10**6 - 1))
@example(0, 0)
@example(LAST_HOUR, None)
def test_an_hour_comes_back_from_its_path_and_its_documents(hour: int | None, page: int | None) -> None:
    assert parse_hour_path(hour_path(hour)) == hour
    assert object_keys.split_hour_document("an/archive", hour_document("an/archive", hour, page)) == (hour, page)


@given(st.integers(0, 10**12 - 1))
def test_a_place_in_the_line_comes_back_from_its_key(number: int) -> None:
    assert object_keys.split_line_document("an/archive", object_keys.line_document("an/archive", number)) == number


@given(st.integers(0, 10**12 - 1), st.integers(0, 10**12 - 1))
def test_keys_sort_as_the_line_does(left: int, right: int) -> None:
    assert (object_keys.line_document("a", left) < object_keys.line_document("a", right)) == (left < right)


@given(st.integers(0, LAST_HOUR), st.integers(0, LAST_HOUR))
def test_paths_sort_as_their_hours_do(left: int, right: int) -> None:
    assert (hour_path(left) < hour_path(right)) == (left < right)


WRONG_PATHS = (
    "date=2026-11-21 date=2026-11-21/hour=24 date=2026-11-31/hour=05 date=2026-1-21/hour=05 date=2026-11-21/hour=5 "
    f"date=1969-12-31/hour=23 date=2026-11-21/hour=05/ DATE=2026-11-21/hour=05 date={object_keys.NO_TIME}/hour=05"
)


@pytest.mark.parametrize("path", ["", *WRONG_PATHS.split()])
def test_nothing_else_is_an_hour_s_path(path: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_hour_path(path)


@given(names, st.sampled_from(["plan", "intent", "manifest", "commit", "settled"]))
def test_a_run_s_document_comes_back_from_its_key(archive: str, name: str) -> None:
    key = object_keys.run_document(archive, "20261121T050000Z", name)
    assert object_keys.split_run_document(archive, key) == ("20261121T050000Z", name)


@given(names, names)
def test_an_archive_s_documents_are_no_other_archive_s(left: str, right: str) -> None:
    key, hour, line = (
        object_keys.run_document(left, "20261121T050000Z", "plan"),
        hour_document(left, 5),
        object_keys.line_document(left, 1),
    )
    assert (object_keys.split_run_document(right, key) is not None) == (left == right)
    assert (object_keys.split_hour_document(right, hour) is not None) == (left == right)
    assert (object_keys.split_line_document(right, line) is not None) == (left == right)


@pytest.mark.parametrize(
    ("split", "wrong"),
    [
        (
            object_keys.split_run_document,
            "20261121T050000Z/plan.json runs/20261121T050000Z/plan.json _ledger/a/runs/20261121T050000Z/plan.json/x "
            "_ledger/a/progress.json _ledger/a/runs/yesterday/plan.json _ledger/a/runs/20261121T050000Z/plan "
            "_ledger/a/runs/plan.json _ledger/a/runs/20261121T050000Z/plan.json.tmp _ledger/a/hours/2026-11-21/05.json",
        ),
        (
            object_keys.split_hour_document,
            "hours/2026-11-21/05.json _ledger/a/hours/2026-11-21/05 _ledger/a/hours/2026-11-21/5.json "
            "_ledger/a/hours/2026-11-21.json _ledger/a/hours/2026-11-21/05+1.json "
            "_ledger/a/hours/2026-11-21/05+0000001.json _ledger/a/hours/2026-11-21/05+.json "
            "_ledger/b/hours/2026-11-21/05.json _ledger/a/progress.json",
        ),
        (
            object_keys.split_line_document,
            "line/000000000001.json _ledger/a/line/1.json _ledger/a/line/0000000000001.json "
            "_ledger/a/line/000000000001 _ledger/a/line/00000000000१.json _ledger/a/line/-00000000001.json "
            "_ledger/a/line/000000000001.json.json _ledger/b/line/000000000001.json _ledger/a/progress.json",
        ),
    ],
)
def test_nothing_else_is_a_run_s_document_an_hour_s_or_a_place_in_the_line(
    split: Callable[[str, str], object], wrong: str
) -> None:
    assert [key for key in wrong.split() if split("a", key) is not None] == []

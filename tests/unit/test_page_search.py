"""A text in the search of the list leads to an hour, a day, a record, a run or an object, or filters the names."""

from datetime import datetime, timedelta
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.config import parse_archive
from kafka_archiver.model.object_keys import ObjectName, object_key, run_name
from kafka_archiver.orchestration.page.search import archives_with, target_of
from kafka_archiver.values.intervals import hour_start, run_id

pytestmark = pytest.mark.unit

NAMES = ("orders", "clicks", "2026-11-21")
TOPICS = st.from_regex(r"[A-Za-z0-9._-]{1,30}", fullmatch=True)
HOURS = st.integers(0, 2_000_000).map(hour_start)
BEFORE = st.sampled_from(["", "orders ", "  clicks  "])


@given(HOURS, st.sampled_from(["T%H", " %H", "T%H:%M", " %H:%M:%S", "T%H:%MZ", " %H:%M UTC"]), BEFORE)
def test_an_hour_is_written_as_the_page_and_the_documents_write_it(hour: datetime, form: str, before: str) -> None:
    target = target_of(f"{before}{hour.date().isoformat()}{hour.strftime(form)}", NAMES)
    assert target
    assert (target.path, target.archive) == (f"/hours/{hour.date()}T{hour:%H}", before.strip() or None)


@given(HOURS, BEFORE, st.integers(0, 9))
def test_a_day_and_a_run_are_of_the_archive_that_stands_before_them(hour: datetime, before: str, revision: int) -> None:
    day = (hour + timedelta(days=1)).date()
    run = run_name(run_id(hour), revision)
    in_airflow = f"scheduled__{hour.isoformat()}"
    for text, path in (
        (f"{day}", f"?last={day}#hours"),
        (run, f"/runs/{run.replace('+', '%2B')}"),
        (in_airflow, f"/dag-runs/{quote(in_airflow, safe='')}"),
    ):
        target = target_of(f"{before}{text}", NAMES)
        if text not in NAMES or before:
            assert target
            assert (target.path, target.archive) == (path, before.strip() or None)


@given(TOPICS, st.integers(0, 10**6), st.integers(0, 10**18))
def test_a_record_and_an_object_s_key_lead_to_the_record(topic: str, partition: int, offset: int) -> None:
    record, key = f"{topic}+{partition}@{offset}", object_key(ObjectName(topic, partition, offset), "a/b", ".jsonl.gz")
    for text in (record, key, f"s3://bucket/lake/{key}"):
        target = target_of(text, NAMES)
        assert target
        assert (target.topic, target.archive) == (topic, None)
        assert parse_qs(urlsplit(target.path).query) == {"at": [record]}


@pytest.mark.parametrize(
    "text", ["", "ord", "orders", "2026-11-21", "2026-13-01", "2026-11-21T25", "orders 5", "+@", "scheduled__"]
)
def test_everything_else_is_a_part_of_a_name(text: str) -> None:
    assert target_of(text, NAMES) is None


def test_a_record_is_sought_in_the_archives_that_have_its_topic() -> None:
    def archive(name: str, source: str) -> dict[str, object]:
        return {name: parse_archive(f"archive: {name}\nsource: {{{source}}}\nstore: {{url: 's3://b/{name}'}}\n", "x")}

    archives = archive("a", "topics: [orders]") | archive("b", "pattern: ord.*") | archive("c", "topics: [clicks]")
    assert list(archives_with("orders", archives, {})) == ["a", "b"]
    assert list(archives_with(None, archives, {})) == ["a", "b", "c"]

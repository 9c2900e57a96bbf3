"""`source.max_value_bytes`: which values are too large, whatever the batches; what is said; where it is kept."""

import gzip
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_archiver.config import parse_archive
from kafka_archiver.messages.errors import BadRecordError, ConfigError
from kafka_archiver.model.object_keys import is_dead_letter
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.records import vectors
from kafka_archiver.records.writer.finish_uploads import complete
from tests.support import values
from tests.support.chunks import HOUR, Row, chunk_of, cut, facts, new_store, write

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("small_parts")]

LIMIT = 5
# JSON and not, with newlines and without, to both sides of the limit; a null value and an empty one.
VALUES = st.sampled_from([None, b"", b"1", b"12345", b"123456", b"{", b"{234567", b"a\nb", b"a\nb\nc\nd", b"1\n" * 4])
FORMATS = [("jsonl", "value"), ("jsonl", "record"), ("avro", "record"), ("parquet", "record")]


@given(
    st.lists(st.tuples(st.sampled_from([0, HOUR, -1]), VALUES), min_size=1, max_size=20),
    st.sampled_from(FORMATS),
    st.sampled_from(["bytes", "json"]),
    st.sampled_from(["dead_letter", "skip"]),
    st.integers(1, 20),
)
# The later one is found first, and comes second all the same.
@example([(0, b"a\nb"), (HOUR, None), (0, b"123456")], ("jsonl", "value"), "bytes", "dead_letter", 1)
def test_values_above_the_limit_are_bad_records_whatever_the_batches_and_the_format(
    drawn: list[tuple[int, bytes | None]], form: tuple[str, str], decode: str, policy: str, size: int
) -> None:
    # A key or headers are no part of it: `content: value` does not even read them.
    rows = [Row(n, time, 0, b"a long key", value, (("h", b"long"),)) for n, (time, value) in enumerate(drawn)]
    settings = {"format": form[0], "content": form[1], "codec": "none", "value_decode": decode}
    settings |= {"max_value_bytes": LIMIT, "part_bytes": 50, "bad_record": policy}
    store = new_store()
    chunk = chunk_of(0, len(rows))
    result = write(chunk, cut(rows, size), store, **settings)  # type: ignore[arg-type]
    assert facts(result) == facts(write(chunk, cut(rows, len(rows)), **settings))  # type: ignore[arg-type]

    large = {row.offset: len(row.value) for row in rows if row.value is not None and len(row.value) > LIMIT}
    letters = [
        json.loads(line)
        for entry in complete([result], store)
        if is_dead_letter(entry.key)
        for line in gzip.decompress(store.get(entry.key) or b"").splitlines()
    ]
    errors = {x["offset"]: x["error"] for x in letters if "max_value_bytes" in x["error"]}
    if policy == "dead_letter":
        assert errors == {
            offset: f"the value has {length} bytes, and `source.max_value_bytes` was 5 when the run was planned (a "
            "higher limit applies to later plans)"
            for offset, length in large.items()
        }
    else:
        assert result.account.filtered >= len(large)
    # Those within the limit are bad for other reasons alone.
    without = write(
        chunk, cut([r for r in rows if r.offset not in large], size), **settings | {"max_value_bytes": None}
    )  # type: ignore[arg-type]
    assert result.account.archived == without.account.archived


def test_the_refusal_names_the_size_the_limit_and_the_command_for_each_choice() -> None:
    rows = [Row(0, 0), Row(1, 0, value=b"1" * 12_345)]
    with pytest.raises(
        BadRecordError,
        match=r"orders\[3\] offset 1: the value has 12,345 bytes, and `source.max_value_bytes` was 12,344 when .*"
        r"airflow dags trigger archive_a --conf '.*bad_record: dead_letter`.*policies.bad_record: skip`",
    ):
        write(chunk_of(0, 2), cut(rows, 1), max_value_bytes=12_344)


def test_a_plan_has_the_limit_only_if_there_is_one() -> None:
    plain = values.plan()
    assert b"max_value_bytes" not in plain.to_json()
    limited = values.plan(settings=Settings(max_value_bytes=7))
    assert b'"max_value_bytes": 7' in limited.to_json()
    assert Plan.from_json(limited.to_json(), "plan.json") == limited
    # That of a release that knew no limit.
    assert Plan.from_json(plain.to_json(), "plan.json").settings.max_value_bytes is None


def test_the_yaml_s_limit_is_frozen_in_the_settings() -> None:
    text = "archive: a\nsource: {topics: [t], max_value_bytes: %s}\nstore: {url: s3://b/p}\n"
    assert parse_archive(text % "1_000_000", "x").settings.max_value_bytes == 1_000_000
    assert parse_archive(text % "null", "x").settings.max_value_bytes is None
    for wrong in ("0", "-1", "many"):
        with pytest.raises(ConfigError, match=f"`source.max_value_bytes`: expected .*; found '?{wrong}"):
            parse_archive(text % wrong, "x")


def test_more_bytes_than_an_array_has_positions_for_are_refused_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "MOST", 4)
    assert vectors.binaries([b"ab", b"", b"cd"]).to_pylist() == [b"ab", b"", b"cd"]
    assert vectors.binaries([b"ab", None, b"cd"]).to_pylist() == [b"ab", None, b"cd"]
    for some in ([b"ab", b"cde"], [b"ab", None, b"cde"]):
        with pytest.raises(OverflowError):
            vectors.binaries(some)

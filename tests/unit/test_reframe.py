"""Other schema ids in frames: one record or a batch, before the data or in a header, and nothing else changes."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.records.decode.frames import SIZE
from kafka_archiver.records.decode.reframe import Reframer, reframe, reframe_header, reframed
from kafka_archiver.records.formats.shared.records import COLUMNS

IDS = {1: 70_000, 2: 1, 300: 2**32 - 1}


def frame(number: int, body: bytes) -> bytes:
    return b"\0" + number.to_bytes(4) + body


FRAMED = st.builds(frame, st.sampled_from([*IDS, 3]), st.binary(max_size=9))
BYTES = st.one_of(st.none(), st.binary(max_size=7), FRAMED, FRAMED)
GUID = b"\1" + bytes(range(16))
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["a", "__value_schema_id", "__key_schema_id"]),
        st.one_of(st.just(GUID), st.builds(frame, st.sampled_from([*IDS, 3]), st.binary(max_size=2)), st.none()),
    ),
    max_size=3,
)


def by_hand(column: str, data: bytes | None, headers: list[tuple[str, bytes | None]]) -> tuple[bytes | None, list]:
    """One record after the other, with the pure functions."""
    name = f"__{column}_schema_id"
    if any(key == name for key, _ in headers):
        return data, [(k, reframe_header(v or b"", IDS) if k == name else v) for k, v in headers]
    return data if data is None else reframe(data, IDS), headers


@given(st.integers(0, 2**32 - 1), st.binary())
def test_only_the_id_changes(number: int, body: bytes) -> None:
    changed = reframe(frame(number, body), {number: 7})
    assert changed == frame(7, body)
    assert reframe(changed, {7: number}) == frame(number, body)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "do not start with the registry's frame"),
        (b"\0\0\0\0", "do not start with the registry's frame"),
        (b"\1\0\0\0\1x", "do not start with the registry's frame"),
        (frame(9, b"x"), r"schema id 9 is not one of the archive's schemas \(1, 2, 300\)"),
    ],
)
def test_a_frame_that_is_truncated_or_unknown_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        reframe(data, IDS)
    assert list(reframed(pa.array([frame(1, b""), data], pa.binary()), IDS)[1]) == [1]


@given(st.lists(st.tuples(BYTES, BYTES, HEADERS)), st.integers(0, 3))
def test_a_batch_is_as_its_records_one_by_one(records: list, start: int) -> None:
    rows = [
        {"key": key, "value": value, "headers": [{"key": k, "value": v} for k, v in headers]}
        for key, value, headers in records
    ]
    schema = pa.schema([COLUMNS.field(name) for name in ("key", "value", "headers")])
    batch = pa.RecordBatch.from_pylist(rows, schema=schema).slice(start)
    expected, refused = [], set()
    for row, (key, value, headers) in enumerate(records[start:]):
        try:
            new_key, headers = by_hand("key", key, headers)
            new_value, headers = by_hand("value", value, headers)
            pairs = [{"key": k, "value": v} for k, v in headers]
            expected.append({"key": new_key, "value": new_value, "headers": pairs})
        except ValueError:
            refused.add(row)
    changed, reasons = Reframer({"key": IDS, "value": IDS}).records(batch)
    assert set(reasons) == refused
    if not refused:
        assert changed.schema == batch.schema
        assert changed.to_pylist() == expected
        changed.validate(full=True)
    assert SIZE == 5

"""Whatever a decoder does with one record is that record's fault: it goes by policy, and the others are decoded."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.model.schemas import Schema
from kafka_archiver.records.decode.base import Decoded, DecoderInput
from kafka_archiver.records.decode.decoders import decoder
from kafka_archiver.records.decode.json_text.columns import from_columns
from kafka_archiver.records.decode.undecodable import Guarded
from kafka_archiver.records.fields import field

pytestmark = pytest.mark.unit


class PanicException(BaseException):
    """The error that a panic in Rust becomes."""


class Fragile:
    """A decoder of text that raises the error of a row, and then decodes nothing of the batch."""

    field = field("value", pa.string())

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def decode(self, data: pa.Array) -> Decoded:
        rows = data.to_pylist()
        if b"bad" in rows:
            raise self._error
        texts = [row.decode() for row in rows]
        unnamed = {row: text for row, text in enumerate(texts) if text.startswith("more")}
        return Decoded(pa.array(texts), {}, unnamed)


ERRORS = [KeyError("x"), RecursionError("deep"), OverflowError("n"), PanicException("index 5")]


@given(st.lists(st.sampled_from([b"good1", b"good2", b"bad", b"more1", b"more2"]), min_size=1), st.sampled_from(ERRORS))
def test_a_batch_with_bad_records_has_all_others(rows: list[bytes], error: BaseException) -> None:
    column, reasons, unnamed = Guarded(Fragile(error)).decode(pa.array(rows, pa.binary()))
    assert column.to_pylist() == [None if row == b"bad" else row.decode() for row in rows]
    assert set(reasons) == {place for place, row in enumerate(rows) if row == b"bad"}
    assert all(reason.startswith(f"the decoder failed: {type(error).__name__}") for reason in reasons.values())
    assert dict(unnamed) == {place: row.decode() for place, row in enumerate(rows) if row.startswith(b"more")}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), pa.ArrowMemoryError()])
def test_no_record_is_at_fault_for_who_interrupts_the_process_or_takes_its_memory(error: BaseException) -> None:
    with pytest.raises(type(error)):
        Guarded(Fragile(error)).decode(pa.array([b"bad"]))


GOOD = b'{"a": 1.5}'
NUMBERS = [
    b"0e99999999999999999999",
    b"1e99999999999999999999",
    b'"1e99999999999999999999"',
    b"1e-99999999999999999999",
]
ZEROS = [b"0e999999999", b"0e-20000000", b"0.00e-99999999"]


@pytest.mark.parametrize("text", NUMBERS + ZEROS)
def test_numbers_with_endless_exponents_take_no_memory(text: bytes) -> None:
    schema = from_columns([{"name": "a", "type": "decimal(10,2)"}])
    value_decoder = decoder("json", DecoderInput(schema))
    column, reasons, _ = value_decoder.decode(pa.array([GOOD, b'{"a": ' + text + b"}", GOOD]))
    assert [row and float(row["a"]) for row in column.to_pylist()][::2] == [1.5, 1.5]
    assert bool(reasons) == (text in NUMBERS)


def zigzag(number: int) -> bytes:
    out, remaining = bytearray(), number << 1
    while remaining > 0x7F:
        out.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    return bytes([*out, remaining])


@pytest.mark.parametrize("size", [100, 1790, 100_000])
def test_decimals_of_too_many_bytes_are_bad_records(size: int) -> None:
    kind: Any = '{"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}'
    schema = Schema(kind="AVRO", text=f'{{"type": "record", "name": "r", "fields": [{{"name": "d", "type": {kind}}}]}}')
    value_decoder = decoder("avro", DecoderInput(schema))
    column, reasons, _ = value_decoder.decode(pa.array([zigzag(2) + b"\x01\x00", zigzag(size) + b"\x7f" * size]))
    assert column.to_pylist()[1] is None
    assert list(reasons) == [1]


SECRETS: list[tuple[str, Any, bytes]] = [
    ("json", from_columns([{"name": "a", "type": "timestamp[ms]"}]), b'{"a": "SECRET"}'),
    ("json", from_columns([{"name": "a", "type": "decimal(4,2)"}]), b'{"a": "SECRET"}'),
    ("json", from_columns([{"name": "a", "type": "number"}]), b'{"a": "SECRET"}'),
    ("json", from_columns([{"name": "a", "type": "int64"}]), b'{"a": 5123.75}'),
    ("json", from_columns([{"name": "a", "type": "int8"}]), b'{"a": 5123}'),
    (
        "json_schema",
        Schema(kind="JSON", text='{"type": "object", "properties": {"a": {"type": "integer"}}}'),
        b'{"a": "SECRET"}',
    ),
]


@pytest.mark.parametrize(("name", "schema", "row"), SECRETS)
def test_reasons_of_an_encrypted_archive_have_no_values(name: Any, schema: Schema, row: bytes) -> None:
    """They say where, and what was expected."""
    for shows_values in (True, False):
        value_decoder = decoder(name, DecoderInput(schema), shows_values)
        [reason] = value_decoder.decode(pa.array([row])).reasons.values()
        assert ("SECRET" in reason or "5123" in reason) == shows_values
        assert ("not shown: the archive is encrypted" in reason) == (not shows_values)
        assert "a" in reason
        assert reason.isprintable()

"""The promises of every format, for each of its codecs and contents. A format added to the registry is tested too."""

import io
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_archiver.messages.errors import IntegrityError, TransientError
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats.base import RECORD, SCHEMAS, VALUE, ReadsAlone
from kafka_archiver.records.formats.registry import extension_of, get_format, resolve
from tests.support.chunks import Row, batch, cut
from tests.support.formats import (
    CASES,
    NAUGHTY,
    ODD,
    Case,
    Read,
    every_case,
    every_combination,
    every_record_case,
    expected,
    few_typed_too,
    fit_for,
    one_codec,
    one_codec_of_records,
    one_codec_typed_too,
    recut,
    rows_of,
    rows_strategy,
    small_limits,
    spilling,
)

pytestmark = pytest.mark.contract

places = st.lists(st.integers(0, 25), max_size=8)
# Many shapes, each so small that time says nothing.
many = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read(case: Case, data: bytes) -> Read:
    return rows_of(get_format(case.format).read(io.BytesIO(data), case.target), case)


def test_the_formats_of_the_first_version_are_there() -> None:
    for name, codecs in {"jsonl": 8, "avro": 6, "parquet": 6}.items():
        assert len({case.codec for case in CASES if case.format == name}) >= codecs


@every_combination
def test_a_format_has_what_it_says(case: Case) -> None:
    assert case.settings == resolve(case.settings, decoded=case.typed), "it has a default for all that it needs"
    assert get_format(case.format).name == case.format
    assert extension_of(case.settings).startswith(".")


@few_typed_too
def test_every_record_comes_back(case: Case) -> None:
    rows = fit_for(case, ODD)
    assert read(case, case.encode([batch(rows)])) == expected(case, rows)


@one_codec_typed_too
def test_naughty_strings_come_back(case: Case) -> None:
    rows = fit_for(case, [Row(n, n, 0, text.encode(), text.encode()) for n, text in enumerate(NAUGHTY, 100)])
    assert read(case, case.encode([batch(rows)])) == expected(case, rows)


@every_record_case
def test_what_is_read_has_the_columns_of_a_record(case: Case) -> None:
    data = case.encode([batch(ODD)])
    batches = list(get_format(case.format).read(io.BytesIO(data), case.target))
    assert {item.schema for item in batches} == {RECORD}
    table = pa.Table.from_batches(batches)
    assert table.column("topic").unique().to_pylist() == [case.target.topic]
    assert table.column("partition").unique().to_pylist() == [case.target.partition]


@every_combination
def test_a_file_is_read_without_its_plan(case: Case) -> None:
    # Without its largest records, which test_every_record_comes_back has.
    format_, rows = get_format(case.format), fit_for(case, ODD[:12])
    if not isinstance(format_, ReadsAlone):
        assert format_.contents | format_.typed == {case.content}, "its name tells what it has"
        return
    settings = resolve(Settings(format=case.format, codec=case.codec, content=min(format_.contents)))
    target = replace(case.target, topic="", partition=0, settings=settings, schema=SCHEMAS[settings.content])
    for known in (rows, []):
        schema, batches = format_.read_alone(io.BytesIO(case.encode([batch(known)])), target)
        tables = list(batches)
        own = schema.names if not schema.equals(VALUE) else ["value"]
        assert all(item.schema.names == own for item in tables)
        assert sum(map(len, tables)) == len(known)
        if schema.equals(case.schema):
            assert rows_of(tables, case) == expected(case, known)
        else:
            assert set(schema.names) >= set(case.schema.names) or own == ["value"]


@every_combination
def test_an_object_without_records_can_be_read(case: Case) -> None:
    # Without a separator, all of an object is one value.
    is_a_value = case.format == "bytes" and not case.options
    assert read(case, case.encode([])) == read(case, case.encode([batch([])])) == [b""] * is_a_value


@every_record_case
def test_no_headers_and_missing_headers_are_the_same(case: Case) -> None:
    rows = [Row(offset, 0) for offset in range(4)]
    missing = batch(rows)
    headers = pa.array([None, [], None, []], missing.schema.field("headers").type)
    missing = missing.set_column(5, "headers", headers)
    assert case.encode([missing]) == case.encode([batch(rows)])


@every_record_case
def test_a_missing_list_of_headers_that_lies_over_headers_is_empty(case: Case) -> None:
    rows = [Row(0, 0, headers=(("a", b"1"), ("b", b"2"))), Row(1, 0, headers=(("c", b"3"),))]
    whole = pa.concat_batches([batch(rows)])
    lists = whole.column("headers")
    # Arrow allows it: the first list is null, yet its positions span two headers.
    masked = pa.ListArray.from_arrays(lists.offsets, lists.values, mask=pa.array([True, False]))
    data = case.encode([whole.set_column(5, "headers", masked.cast(lists.type))])
    assert read(case, data) == expected(case, [rows[0]._replace(headers=()), rows[1]])


@every_record_case
def test_timestamps_that_no_date_can_show_survive(case: Case) -> None:
    rows = [Row(i, t) for i, t in enumerate([-(2**63), -2, 253_402_300_800_000, 2**62, 2**63 - 1])]
    assert read(case, case.encode([batch(rows)])) == expected(case, rows)


@one_codec
@many
@given(data=st.data(), first=places, second=places)
def test_bytes_do_not_depend_on_batches(case: Case, data: st.DataObject, first: list[int], second: list[int]) -> None:
    rows = data.draw(rows_strategy(case))
    with small_limits():
        encoded = case.encode(recut(rows, first))
        assert encoded == case.encode(recut(rows, second))
        assert encoded == case.encode([batch(rows)])


@every_combination
def test_bytes_do_not_depend_on_batches_with_any_codec(case: Case, tmp_path: Path) -> None:
    rows = fit_for(case, ODD[:12])
    with small_limits():
        whole = case.encode([batch(rows)])
        assert case.encode(recut(rows, [1, 2, 7])) == whole
        assert spilling(case.encoder(), map(case.fitting, recut(rows, [3, 5])), tmp_path, 2) == whole


@one_codec
def test_bytes_do_not_depend_on_batches_at_full_size(case: Case) -> None:
    # Enough for two row groups and many slices and blocks; too regular to take long.
    rows = [Row(i, i, 0, b"%d" % i, b'{"n":%d,"pad":"%s"}' % (i * i, b"x" * (i % 5000))) for i in range(15_000)]
    assert case.encode(cut(rows, 15_000)) == case.encode(cut(rows, 997))


@one_codec_of_records
@many
@given(data=st.data(), where=places, every=st.integers(1, 4))
def test_bytes_do_not_depend_on_spilling(
    case: Case, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, where: list[int], every: int
) -> None:
    rows = data.draw(rows_strategy(case))
    directory = tmp_path_factory.getbasetemp()
    with small_limits():
        assert spilling(case.encoder(), recut(rows, where), directory, every) == case.encode([batch(rows)])


@every_case
def test_spilling_frees_what_was_pending_and_leaves_no_name(case: Case, tmp_path: Path) -> None:
    encoder = case.encoder()
    for number in range(20):
        list(encoder.write(batch([Row(number, 0, value=b'{"pad":"%s"}' % (b"x" * 10_000))])))
    pending = encoder.pending
    freed = encoder.spill(tmp_path)
    # An encoder that streams holds a slice or a block; who holds more gives it up.
    assert freed == pending if pending > 1 << 20 else freed in (0, pending)
    assert encoder.pending == pending - freed
    assert encoder.spill(tmp_path) == 0
    assert not list(tmp_path.iterdir())


@every_case
def test_a_failed_spill_loses_nothing(case: Case, tmp_path: Path) -> None:
    rows = [Row(number, 0) for number in range(100)]
    encoder = case.encoder()
    pieces = [bytes(piece) for piece in encoder.write(batch(rows))]
    pending = encoder.pending
    try:
        freed = encoder.spill(tmp_path / "missing")
    except FileNotFoundError:
        freed = 0
    assert encoder.pending == pending - freed
    assert b"".join([*pieces, *map(bytes, encoder.finish())]) == case.encode([batch(rows)])


@one_codec
def test_an_encoder_holds_less_than_a_row_group(case: Case, tmp_path: Path) -> None:
    encoder = case.encoder()
    rows = [Row(i, 0, value=b'"%s"' % (b"x" * 100_000)) for i in range(10)]
    most = 0
    for _ in range(50):
        list(encoder.write(batch(rows)))
        # The records of a MAK file wait for its header; the writer makes them wait on disk.
        if case.format == "mak":
            encoder.spill(tmp_path)
        most = max(most, encoder.pending)
    assert most < (33 << 20 if case.format == "parquet" else 1 << 20)


@every_case
def test_a_small_slice_does_not_pin_what_it_was_cut_from(case: Case) -> None:
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    encoder = case.encoder()
    large = pa.concat_batches([batch([Row(i, 0, value=b'"%s"' % (b"x" * 1_000_000)) for i in range(20)])])
    kept = encoder.write(large.slice(3, 1))
    assert pool.bytes_allocated() - before > 20_000_000
    del large
    assert pool.bytes_allocated() - before < 5_000_000
    del kept


def some_places(length: int) -> list[int]:
    """The places near both ends, and forty between them."""
    ends = {*range(min(12, length)), *range(max(0, length - 12), length)}
    return sorted({*ends, *range(0, length, max(1, length // 40))})


@few_typed_too
def test_damage_is_noticed_or_harmless(case: Case) -> None:
    rows = fit_for(case, ODD[:12]) * 20
    data = case.encode([batch(rows)])
    for at in some_places(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        try:
            outcome = read(case, bytes(damaged))
        except IntegrityError:
            continue
        # Nothing but the manifest's checksum sees a flipped bit in plain text, a block of Avro or Parquet's metadata.
        # Nor has Brotli a checksum.
        if case.format not in ("avro", "parquet") and case.codec not in ("none", "brotli"):
            assert outcome == expected(case, rows), f"byte {at} of {len(data)}"


@few_typed_too
def test_a_cut_off_object_is_noticed_or_ends_behind_a_record(case: Case) -> None:
    rows = fit_for(case, ODD[:12]) * 20
    data = case.encode([batch(rows)])
    for length in some_places(len(data)):
        try:
            outcome = read(case, data[:length])
        except IntegrityError:
            continue
        # Neither Avro nor Snappy's framing format has an end.
        assert case.format == "avro" or case.codec in ("none", "snappy"), f"{length} of {len(data)} bytes"
        assert outcome == expected(case, rows)[: len(outcome)] or case.format == "bytes"


class _Failing(io.BytesIO):
    """A store that stops answering in the middle of an object."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() > 300:
            raise TransientError("no answer from the store")
        return super().read(size)


def test_a_store_that_fails_is_no_damage_of_an_avro_file() -> None:
    case = Case("avro", "none", "record")
    with pytest.raises(TransientError, match="no answer from the store"):
        list(get_format("avro").read(_Failing(case.encode([batch(ODD)])), case.target))


def test_a_damaged_schema_of_an_avro_file_is_noticed() -> None:
    case = Case("avro", "zstd", "record")
    data = bytearray(case.encode([batch(ODD)]))
    data[data.index(b'"type":["null"') + 2] ^= 1
    with pytest.raises(IntegrityError, match="is not a complete Avro file of records"):
        read(case, bytes(data))

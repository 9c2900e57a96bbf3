"""An index beside an object: the part that it names for an offset has the record, and the audit agrees with it."""

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.audit.readers import reader_of
from kafka_archiver.audit.readers.base import SidecarOwner
from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats import get_format, resolve
from kafka_archiver.records.formats.base import HasSidecar, ReadsFrom, Sought
from kafka_archiver.records.reading.files import RangeFile
from kafka_archiver.values.checksum import crc32, spelt
from tests.support.chunks import Row, batch, cut
from tests.support.formats import INDEX, Case, small_limits

pytestmark = pytest.mark.unit
AVRO = get_format("avro").extensions
CASES = [
    *(Case("avro", codec, "record", (INDEX,)) for codec in AVRO if codec != "gzip"),
    *(Case("avro", codec, "value", (INDEX,), typed=True) for codec in ("zstd", "none")),
    *(Case("jsonl", "zstd", content, (INDEX,)) for content in ("value", "record")),
    *(Case("jsonl", "zstd", content, (INDEX,), typed=True) for content in ("value", "both")),
]
every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
# The gap before each record, and the length of its value.
SHAPES = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1, 7]), st.sampled_from([0, 5, 80, 300])), min_size=1, max_size=40
)


def rows_of(shapes: list[tuple[int, int]]) -> list[Row]:
    offset, rows = 100, []
    for number, (gap, length) in enumerate(shapes):
        offset += gap
        rows.append(Row(offset, 1_763_700_000_000, value=b'{"id":%d,"note":"%s"}' % (number, b"x" * length)))
        offset += 1
    return rows


def indexed(case: Case, rows: list[Row], size: int) -> tuple[bytes, bytes]:
    """Return an object, and its index."""
    encoder = case.encoder()
    pieces = [bytes(piece) for item in cut(rows, size) for piece in encoder.write(case.fitting(item))]
    data = b"".join([*pieces, *map(bytes, encoder.finish())])
    assert isinstance(encoder, HasSidecar)
    return data, encoder.sidecar()


def whole(case: Case, data: bytes) -> list[Any]:
    batches = get_format(case.format).read(io.BytesIO(data), case.target)
    return [row for item in batches for row in item.to_pylist()]


def entry_of(case: Case, rows: list[Row], data: bytes) -> ObjectEntry:
    return ObjectEntry(
        key=case.target.key,
        topic="t",
        partition=3,
        generation=0,
        chunk_start=0,
        path="date=2025-11-21/hour=05",
        rows=len(rows),
        bytes=len(data),
        checksum=spelt(crc32(data)),
        etag="",
        first_offset=rows[0].offset,
        last_offset=rows[-1].offset,
        min_timestamp=0,
        max_timestamp=0,
    )


@every_case
@settings(max_examples=20)
@given(shapes=SHAPES, size=st.integers(1, 50))
def test_any_offset_by_the_index_gives_what_the_whole_object_has_there(
    case: Case, shapes: list[tuple[int, int]], size: int
) -> None:
    rows, own = rows_of(shapes), get_format(case.format)
    with small_limits():
        data, index = indexed(case, rows, size)
        assert (data, index) == indexed(case, rows, 1), "batches have no influence"
    expected, largest = whole(case, data), max(c["byte_length"] for c in json.loads(index)["chunks"])
    assert isinstance(own, ReadsFrom)
    for row, record in list(enumerate(rows))[:: 1 + len(rows) // 4]:
        reads: list[int] = []

        def fetch(start: int, length: int, reads: list[int] = reads) -> bytes:
            reads.append(length)
            return data[start : start + length]

        source: Any = RangeFile(fetch, len(data))
        begun = own.read_from(source, case.target, Sought(record.offset, row, len(rows), lambda: index))
        assert begun is not None
        first, batches = begun
        read = [item for items in [next(batches)] for item in items.to_pylist()]
        assert first <= row < first + len(read)
        # As text: some numbers are none.
        assert repr(read[row - first]) == repr(expected[row])
        assert len(reads) == 1
        assert reads[0] <= largest
    owner = SidecarOwner(entry_of(case, rows, data), lambda start, length: data[start : start + length])
    audit = reader_of(case.format).sidecar
    assert audit
    assert list(audit(io.BytesIO(index), case.settings, owner)) == []


@every_case
def test_a_part_with_another_byte_is_no_record(case: Case) -> None:
    rows = rows_of([(1, 80)] * 20)
    with small_limits():
        data, index = indexed(case, rows, 7)
    chunk = json.loads(index)["chunks"][1]
    at = chunk["byte_offset"] + chunk["byte_length"] // 2
    damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    source: Any = RangeFile(lambda start, length: damaged[start : start + length], len(data))
    own: Any = get_format(case.format)
    with pytest.raises(IntegrityError, match="checksum"):
        list(own.read_from(source, case.target, Sought(chunk["first_record_offset"], 0, len(rows), lambda: index))[1])
    owner = SidecarOwner(entry_of(case, rows, data), lambda start, length: damaged[start : start + length])
    audit: Any = reader_of(case.format).sidecar
    assert [f for f in audit(io.BytesIO(index), case.settings, owner) if f.startswith("chunk 1 ")]


@every_case
def test_an_index_that_says_something_else_is_a_fault(case: Case) -> None:
    rows = rows_of([(0, 80)] * 20)
    with small_limits():
        data, index = indexed(case, rows, 7)
    owner = SidecarOwner(entry_of(case, rows, data), lambda start, length: data[start : start + length])
    audit: Any = reader_of(case.format).sidecar
    for field in json.loads(index)["chunks"][1]:
        document = json.loads(index)
        value = document["chunks"][1][field]
        document["chunks"][1][field] = "crc32:00000000" if field == "checksum" else (value or 0) + 1
        assert list(audit(io.BytesIO(json.dumps(document).encode()), case.settings, owner)), field


def test_without_the_option_nothing_changes() -> None:
    for name, codec in (("avro", "zstd"), ("jsonl", "zstd")):
        plain = resolve(Settings(format=name, codec=codec, content="record"))
        assert plain.options == {}
        encoder = get_format(name).encoder(Case(name, codec, "record").target)
        assert not isinstance(encoder, HasSidecar)
        encoder.write(batch([Row(1, 0)]))


def test_lines_of_another_codec_have_no_index() -> None:
    with pytest.raises(ConfigError, match="lines have an index with `codec: zstd`, found codec gzip; `format: block_"):
        resolve(Settings(format="jsonl", codec="gzip", options={"index": True}))

"""Objects read by others: gzip and zlib of the standard library, zstandard, orjson, fastavro, pyarrow.

Nothing is in memory but a record, an Avro block or a Parquet row group. Of damaged bytes they raise what they like.
"""

import gzip
import io
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import fastavro
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

_READ = 1 << 20


class Seen(NamedTuple):
    """Where a record in an object says that it comes from."""

    topic: str
    partition: int
    offset: int
    timestamp: int


def lines(file: BinaryIO, codec: str) -> int:
    """How many lines an object of JSON lines has.

    :raises ValueError: the last one does not end.
    """
    count, last = 0, b"\n"
    with _stream(file, codec) as stream:
        while piece := stream.read(_READ):
            count, last = count + piece.count(b"\n"), piece[-1:]
    if last != b"\n":
        raise ValueError("the last line does not end")
    return count


def records(file: BinaryIO, format_name: str, codec: str) -> Iterator[Seen]:
    """The records of an object with `content: record`, in its order.

    :param file: seekable.
    :raises KeyError: no reader but our own is known for the format.
    """
    return READERS[format_name](file, codec)


def _stream(file: BinaryIO, codec: str) -> BinaryIO:
    if codec == "gzip":
        return gzip.open(file)  # type: ignore[return-value]
    if codec == "zstd":
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return file


def _jsonl(file: BinaryIO, codec: str) -> Iterator[Seen]:
    stream: Any = _stream(file, codec)
    for line in io.BufferedReader(stream, _READ):
        record = orjson.loads(line)
        yield Seen(record["topic"], record["partition"], record["offset"], record["timestamp"])


def _avro(file: BinaryIO, codec: str) -> Iterator[Seen]:  # noqa: ARG001 - the file names it
    blocks: Any = fastavro.block_reader(file)
    # Without logical types: Python's dates end before Kafka's times do.
    schema = fastavro.parse_schema(json.loads(blocks.metadata["avro.schema"], object_hook=_plain))
    for block in blocks:
        data = io.BytesIO(block.bytes_.getvalue())
        for _ in range(block.num_records):
            record: Any = fastavro.schemaless_reader(data, schema, None)
            yield Seen(record["topic"], record["partition"], record["offset"], record["timestamp"])


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "logicalType"}


def _parquet(file: BinaryIO, codec: str) -> Iterator[Seen]:  # noqa: ARG001 - as above
    reader = pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)
    for group in range(reader.num_row_groups):
        table = reader.read_row_group(group)
        columns = [table.column(name) for name in Seen._fields]
        columns[3] = columns[3].cast(pa.timestamp("ms")).cast(pa.int64())
        yield from map(Seen, *(column.to_pylist() for column in columns))


READERS: dict[str, Callable[[BinaryIO, str], Iterator[Seen]]] = {"jsonl": _jsonl, "avro": _avro, "parquet": _parquet}

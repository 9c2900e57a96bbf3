"""Our objects as others read them, with libraries that share no code with the encoders."""

import bz2
import gzip
import io
import json
import zlib
from base64 import b64decode
from collections.abc import Callable, Container
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cramjam
import duckdb
import fastavro
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq
import pytest
import zstandard

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.registry import extension_of, get_format
from tests.support.chunks import Row, batch, read_parquet
from tests.support.formats import CASES, MEGABYTE, ODD, RECORD_CASES, TYPED_CASES, Case, each, expected, fit_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.contract

# Line breaks where JSON may have them, and bytes that are none for readers of text.
LINES = [
    b'{"a":\r1}',
    b"\r[\r\n1,\n\r2]\r",
    b'{"a":2}\r\n',
    b"",
    b"\x0b\x0c\x1c\x1d\x85",
    "\u2028\u2029\x85".encode(),
    b'"\\r\\n"',
]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gzip": gzip.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read(),
    "snappy": lambda data: bytes(cramjam.snappy.decompress(data)),
    "lz4": lambda data: pa.input_stream(io.BytesIO(data), compression="lz4").read(),
    "brotli": lambda data: pa.input_stream(io.BytesIO(data), compression="brotli").read(),
    "bzip2": bz2.decompress,
    "deflate": zlib.decompress,
}
# The codecs of text that others know by the file's name.
DUCKDB = {"none", "gzip", "zstd"}
ARROW = DUCKDB | {"lz4", "brotli", "bzip2"}
SPARK = {"none", "gzip", "bzip2", "deflate"}


def of(cases: list[Case], *formats: str, codecs: Container[str] = DECOMPRESS) -> pytest.MarkDecorator:
    return each([case for case in cases if case.format in formats and case.codec in codecs])


def stored(case: Case, rows: list[Row], directory: Path) -> str:
    path = directory / f"object{extension_of(case.settings)}"
    path.write_bytes(case.encode([batch(rows)]))
    return str(path)


def from_dict(fields: dict[str, Any]) -> Row:
    """A record as our JSON and Avro name its fields."""

    def binary(item: dict[str, Any], name: str) -> bytes | None:
        if f"{name}_base64" in item:
            return b64decode(item[f"{name}_base64"])
        value = item[name]
        return value.encode() if isinstance(value, str) else value

    return Row(
        fields["offset"],
        fields["timestamp"],
        fields["timestamp_type"],
        binary(fields, "key"),
        binary(fields, "value"),
        tuple((h["key"], binary(h, "value")) for h in fields["headers"]),
    )


def by_others(case: Case, data: bytes) -> Any:
    """The columns, or the text. As text, because NaN is not NaN."""
    if case.format == "parquet":
        return repr(pq.read_table(io.BytesIO(data)).to_pylist())
    if case.format == "avro":
        return repr(list(fastavro.reader(io.BytesIO(data))))
    return DECOMPRESS[case.codec](data)


@each([case for case in TYPED_CASES if case.codec != "none"])
def test_a_codec_changes_no_typed_column(case: Case) -> None:
    """test_formats_typed.py has what others read without a codec."""
    # Lines without a codec have no index, which is an object of its own.
    plain = case._replace(codec="none", options=() if case.format == "jsonl" else case.options)
    packed, unpacked = (variant.encode([batch(ODD[:12])]) for variant in (case, plain))
    assert packed != unpacked
    assert by_others(case, packed) == by_others(plain, unpacked)


class TestJsonLines:
    @of(RECORD_CASES, "jsonl")
    def test_the_standard_library_reads_the_records(self, case: Case) -> None:
        lines = DECOMPRESS[case.codec](case.encode([batch(ODD)])).split(b"\n")
        assert lines.pop() == b""
        rows = [json.loads(line) for line in lines]
        assert [from_dict(row) for row in rows] == ODD
        assert {(row["topic"], row["partition"]) for row in rows} == {("Ömlaut", 3)}

    def test_keys_are_in_order_and_say_what_is_base64(self) -> None:
        rows = [
            Row(7, -1, 1, b"k", None, (("a", b"1"), ("a", None), ("b", b"\xff"))),
            Row(8, 0, 0, b"\xff", b"", ()),
        ]
        assert Case("jsonl", "none", "record").encode([batch(rows)]).decode().splitlines() == [
            '{"topic":"Ömlaut","partition":3,"offset":7,"timestamp":-1,"timestamp_type":1,"key":"k","value":null,'
            '"headers":[{"key":"a","value":"1"},{"key":"a","value":null},{"key":"b","value_base64":"/w=="}]}',
            '{"topic":"Ömlaut","partition":3,"offset":8,"timestamp":0,"timestamp_type":0,"key_base64":"/w==",'
            '"value":"","headers":[]}',
        ]

    @of(CASES, "jsonl")
    def test_one_record_is_one_line(self, case: Case) -> None:
        rows = fit_for(case, ODD)
        assert DECOMPRESS[case.codec](case.encode([batch(rows)])).count(b"\n") == len(rows)

    def test_values_are_stored_as_they_are(self) -> None:
        case = Case("jsonl", "gzip", "value")
        rows = fit_for(case, ODD)
        lines = gzip.decompress(case.encode([batch(rows)])).split(b"\n")[:-1]
        assert lines == [b"null" if value is None else value for value in expected(case, rows)]

    @of(CASES, "jsonl", "block_gzip", codecs=DUCKDB)
    def test_duckdb_reads_values_and_records(self, case: Case, tmp_path: Path) -> None:
        rows = [Row(i, 1763700000000 + i, 0, b"k", b'{"n":%d,"s":"\xc3\xbc"}' % i) for i in range(5000)]
        field = "offset" if case.content == "record" else "n"
        by_duckdb = duckdb.sql(f"select count(*), sum(\"{field}\") from read_json('{stored(case, rows, tmp_path)}')")
        assert by_duckdb.fetchall() == [(5000, sum(range(5000)))]

    @of(CASES, "jsonl", codecs=ARROW)
    def test_pyarrow_reads_values_and_records(self, case: Case, tmp_path: Path) -> None:
        rows = [Row(i, 1763700000000 + i, 0, b"k", b'{"n":%d,\n"s":"\xc3\xbc"}' % i) for i in range(5000)]
        compression = "brotli" if case.codec == "brotli" else "detect"
        with pa.input_stream(stored(case, rows, tmp_path), compression=compression) as f:
            table = pyarrow.json.read_json(f)
        assert table.column("offset" if case.content == "record" else "n").to_pylist() == list(range(5000))

    @of(CASES, "jsonl")
    def test_readers_of_text_see_a_line_a_record(self, case: Case, tmp_path: Path) -> None:
        rows = [*fit_for(case, ODD), *(Row(100 + n, 0, value=value) for n, value in enumerate(LINES))]
        whole = stored(case, rows, tmp_path)
        plain = DECOMPRESS[case.codec](Path(whole).read_bytes())
        # Python's files have universal newlines by default: \n, \r and \r\n.
        assert len(list(io.TextIOWrapper(io.BytesIO(plain), "utf-8", "replace"))) == len(rows)
        assert plain.count(b"\n") == len(rows)
        assert b"\r" not in plain

    @pytest.mark.spark
    @of(CASES, "jsonl", codecs=SPARK | {"zstd"})
    def test_spark_sees_a_row_a_record(self, case: Case, tmp_path: Path, spark: "SparkSession") -> None:
        rows = [*fit_for(case, ODD), *(Row(100 + n, 0, value=value) for n, value in enumerate(LINES))]
        whole = stored(case, rows, tmp_path)
        # Of zstd Hadoop wants a native library, which PySpark does not bring.
        if case.codec == "zstd":
            plain = tmp_path / "plain.jsonl"
            plain.write_bytes(DECOMPRESS["zstd"](Path(whole).read_bytes()))
            whole = str(plain)
        assert spark.read.text(whole).count() == len(rows)
        if case.content == "record":
            offsets = spark.read.schema("offset long").json(whole).collect()
            assert [row["offset"] for row in offsets] == [row.offset for row in rows]

    def test_gzip_has_no_time_and_no_system(self) -> None:
        header = Case("jsonl", "gzip", "value").encode([batch(ODD[:1])])[:10]
        assert header.hex() == "1f8b08000000000000ff"

    def test_zstd_is_frames_of_8_mebibytes_with_checksums(self, tmp_path: Path) -> None:
        line = b'{"s":"%s"}' % (b"ab c" * (1 << 18))
        data = Case("jsonl", "zstd", "value").encode([batch([Row(i, 0, value=line) for i in range(20)])])
        (tmp_path / "x.jsonl.zst").write_bytes(data)
        sizes = []
        while data:
            assert zstandard.get_frame_parameters(data).has_checksum
            frame = zstandard.ZstdDecompressor().decompressobj()
            sizes.append(len(frame.decompress(data)))
            assert frame.eof
            data = frame.unused_data
        whole = 20 * (len(line) + 1)
        assert sizes == [8 << 20] * (whole // (8 << 20)) + [whole % (8 << 20)]
        assert len(sizes) > 2
        # Those who know nothing of frames read through them.
        with pa.input_stream(tmp_path / "x.jsonl.zst", compression="zstd") as stream:
            assert stream.read().count(b"\n") == 20
        path = tmp_path / "x.jsonl.zst"
        counts = duckdb.sql(f"select count(*) from read_json('{path}', maximum_object_size=4000000)")
        assert counts.fetchall() == [(20,)]


class TestAvro:
    @of(RECORD_CASES, "avro")
    def test_fastavro_reads_the_records(self, case: Case) -> None:
        rows = list(fastavro.reader(io.BytesIO(case.encode([batch(ODD)]))))
        for row in rows:
            row["timestamp"] = (row["timestamp"] - EPOCH) // timedelta(milliseconds=1)
        assert [from_dict(row) for row in rows] == ODD
        assert {(row["topic"], row["partition"]) for row in rows} == {("Ömlaut", 3)}

    def test_timestamps_are_instants_from_the_first_to_the_last(self) -> None:
        rows = [Row(i, t) for i, t in enumerate([-1, 0, 253_402_300_799_999])]
        read = fastavro.reader(io.BytesIO(Case("avro", "zstd", "record").encode([batch(rows)])))
        assert [row["timestamp"] for row in read] == [
            datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC),
            EPOCH,
            datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC),
        ]

    def test_blocks_come_out_while_records_go_in(self) -> None:
        encoder = Case("avro", "none", "record").encoder()
        ready = [sum(map(len, encoder.write(batch([Row(i, 0, value=MEGABYTE)])))) for i in range(3)]
        assert all(size > len(MEGABYTE) for size in ready)
        assert encoder.pending == 0


class TestParquet:
    @of(RECORD_CASES, "parquet")
    def test_pyarrow_reads_the_records(self, case: Case) -> None:
        assert read_parquet(case.encode([batch(ODD)])) == ODD

    @of(RECORD_CASES, "parquet")
    def test_duckdb_reads_the_records(self, case: Case, tmp_path: Path) -> None:
        by_duckdb = duckdb.sql(
            'select "offset", epoch_ms("timestamp"), timestamp_type, "key", "value", headers, topic, "partition" '
            f"from read_parquet('{stored(case, ODD, tmp_path)}') order by file_row_number"
        ).fetchall()
        rows = [
            Row(*fields, headers=tuple((h["key"], h["value"]) for h in headers)) for *fields, headers, _, _ in by_duckdb
        ]
        assert rows == ODD
        assert {row[-2:] for row in by_duckdb} == {("Ömlaut", 3)}

    def test_the_schema_says_what_may_be_missing_and_in_which_zone(self) -> None:
        schema = pq.read_schema(io.BytesIO(Case("parquet", "zstd", "record").encode([batch(ODD)])))
        assert [(f.name, str(f.type), f.nullable) for f in schema] == [
            ("topic", "string", False),
            ("partition", "int32", False),
            ("offset", "int64", False),
            ("timestamp", "timestamp[ms, tz=UTC]", False),
            ("timestamp_type", "int32", False),
            ("key", "binary", True),
            ("value", "binary", True),
            ("headers", "list<element: struct<key: string not null, value: binary>>", False),
        ]
        assert schema.metadata is None

    @of(RECORD_CASES, "parquet")
    def test_the_codec_is_the_one_asked_for(self, case: Case) -> None:
        column = pq.read_metadata(io.BytesIO(case.encode([batch(ODD)]))).row_group(0).column(6)
        assert column.compression == {"none": "UNCOMPRESSED"}.get(case.codec, case.codec.upper())

    def test_the_file_does_not_name_the_library(self) -> None:
        data = Case("parquet", "zstd", "record").encode([batch(ODD)])
        assert pq.read_metadata(io.BytesIO(data)).created_by == "kafka-archiver version 1"
        assert b"arrow" not in data

    def test_pages_have_checksums(self) -> None:
        case = Case("parquet", "none", "record")
        data = bytearray(case.encode([batch([Row(0, 0, value=MEGABYTE)])]))
        data[len(data) // 2] ^= 1
        with pytest.raises(IntegrityError, match="checksum"):
            list(get_format("parquet").read(io.BytesIO(data), case.target))

    def test_it_is_not_larger_than_what_pyarrow_writes(self) -> None:
        rows = [
            Row(i, 1763700000000 + i * i % 977, 0, b"%d" % (i * 7919 % 10007), b'{"n":%d,"s":%d}' % (i, i * i))
            for i in range(50_000)
        ]
        table = pa.Table.from_batches([batch(rows)])
        table = table.set_column(1, "timestamp", table.column("timestamp").cast(pa.timestamp("ms", tz="UTC")))
        table = table.append_column("topic", [["orders"] * len(rows)]).append_column("partition", [[3] * len(rows)])
        by_pyarrow = io.BytesIO()
        pq.write_table(table, by_pyarrow, compression="zstd")
        assert len(Case("parquet", "zstd", "record").encode([batch(rows)])) <= by_pyarrow.tell()

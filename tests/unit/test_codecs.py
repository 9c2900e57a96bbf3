"""Streams of text: their ends are certain, and a store that fails is not taken for damage."""

import io

import pyarrow as pa
import pytest

from kafka_archiver.audit.readers.streams import plain
from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import IntegrityError, TransientError
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats import get_format, names, resolve
from kafka_archiver.records.formats.base import VALUE, Buffer, Target
from kafka_archiver.records.formats.shared.codecs import SUFFIXES
from kafka_archiver.records.formats.shared.compress import StreamEncoder, compressed
from kafka_archiver.records.formats.shared.decompress import decompressed

pytestmark = pytest.mark.unit

STORE = {"url": "s3://b/p", "format": "jsonl", "content": "value"}
YAML = {"archive": "a", "source": {"topics": ["t"]}}
CODECS = sorted(set(SUFFIXES) - {"none"})
TEXT = b"".join(b"%d %d\n" % (n, n * n) for n in range(100_000))
every_codec = pytest.mark.parametrize("codec", CODECS)


def stream(codec: str, text: bytes = TEXT) -> bytes:
    compressor = compressed(codec)
    return b"".join(map(bytes, [*compressor.write(text), *compressor.finish()]))


def read(codec: str, data: bytes) -> bytes:
    return b"".join(decompressed(codec, io.BytesIO(data)))


@every_codec
def test_formats_and_audit_read_the_same(codec: str) -> None:
    for text in (TEXT, b""):
        assert read(codec, stream(codec, text)) == plain(io.BytesIO(stream(codec, text)), codec).read() == text


def test_a_plan_says_the_level_of_zstd_and_a_plan_that_does_not_keeps_its_bytes() -> None:
    old, new = (b"".join(map(bytes, stream_of(rules))) for rules in (1, 2))
    assert old == stream("zstd")
    assert old != new
    assert read("zstd", old) == read("zstd", new) == TEXT
    assert Settings(codec="zstd").codec_rules == 1
    assert "codec_rules" not in Settings(codec="zstd").model_dump()
    archives = [Archive.model_validate(YAML | {"store": STORE | store}) for store in ({"codec": "zstd"}, {})]
    assert [archive.settings.codec_rules for archive in archives] == [2, 1]


def test_every_format_of_one_stream_has_the_newer_level() -> None:
    rules = {}
    for format_ in map(get_format, names()):
        if "zstd" in format_.extensions:
            content = min(format_.contents or format_.typed)
            settings = Settings(format=format_.name, content=content, codec="zstd", codec_rules=2)
            rules[format_.name] = resolve(settings, decoded=not format_.contents).codec_rules
    assert {name for name, rule in rules.items() if rule == 2} == {"bytes", "csv", "jsonl", "text"}
    assert {name for name, rule in rules.items() if rule == 1} >= {"avro", "parquet"}


def stream_of(rules: int) -> list[Buffer]:
    settings = Settings(format="jsonl", content="value", codec="zstd", codec_rules=rules)
    encoder = StreamEncoder(
        Target(topic="t", partition=0, key="", settings=settings, schema=VALUE), lambda _, __: [TEXT]
    )
    batch = pa.RecordBatch.from_pylist([{"offset": 0, "timestamp": 0, "value": b""}], VALUE)
    return [*encoder.write(batch), *encoder.finish()]


@pytest.mark.parametrize("codec", ["gzip", "deflate"])
def test_the_bytes_do_not_depend_on_where_the_compressor_lies_in_memory(codec: str) -> None:
    """ISA-L alone fails here in most runs, with about one in 20,000 of these texts."""
    words = [n.to_bytes(4, "big") for n in range(60_000)]
    texts = [b"ab" + word + b"." * 40 + word for word in words]
    streams = [stream(codec, text) for text in texts]
    elsewhere = [compressed(codec) for _ in range(40)]
    assert [stream(codec, text) for text in texts] == streams
    assert elsewhere


@every_codec
@pytest.mark.parametrize("missing", [1, 3, "all"])
def test_a_missing_end_is_found_by_both(codec: str, missing: int | str) -> None:
    data = b"" if isinstance(missing, str) else stream(codec)[:-missing]
    with pytest.raises(IntegrityError, match=f"{codec} data"):
        read(codec, data)
    # zstandard's reader does not miss a frame's checksum. The audit compares that of the object, too.
    if data and codec != "zstd":
        with pytest.raises((EOFError, ValueError, OSError)):
            plain(io.BytesIO(data), codec).read()


@every_codec
def test_bytes_after_the_end_are_found(codec: str) -> None:
    with pytest.raises(IntegrityError, match=f"{codec} data"):
        read(codec, stream(codec) + b"abcdefghijkl")


class Failing(io.BytesIO):
    """A store that stops answering in the middle of an object."""

    def __init__(self, data: bytes, error: Exception) -> None:
        super().__init__(data)
        self._error = error

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise self._error
        return super().read(1000)


@every_codec
@pytest.mark.parametrize("error", [TransientError("no answer"), TimeoutError(), OSError(5, "broken disk")])
def test_a_store_that_fails_is_no_damage(codec: str, error: Exception) -> None:
    with pytest.raises(type(error)):
        list(decompressed(codec, Failing(stream(codec), error)))

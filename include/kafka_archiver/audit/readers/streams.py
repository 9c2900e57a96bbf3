"""Decompresses streams of text, with other libraries than those that compressed them."""

import bz2
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa
import zstandard

from kafka_archiver.values.segmented import PiecesFile

READ = 1 << 20
_SNAPPY, _STORED = 0x00, 0x01


def plain(file: BinaryIO, codec: str) -> BinaryIO:
    """The decompressed stream."""
    if codec == "none":
        return file
    if codec in _FILES:
        return _FILES[codec](file)  # type: ignore[no-any-return]
    return io.BufferedReader(PiecesFile(_PIECES[codec](file)), READ)


def _arrow(codec: str, file: BinaryIO) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), codec)
    return iter(lambda: stream.read(READ), b"")


def _deflated(file: BinaryIO) -> Iterator[bytes]:
    stream = zlib.decompressobj()
    while piece := file.read(READ):
        yield stream.decompress(piece)
    if not stream.eof or stream.unused_data:
        raise ValueError("the zlib stream does not end with the object")


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    """The chunks of Snappy's framing format, without their checksums: the object has one."""
    while head := file.read(4):
        size = int.from_bytes(head[1:], "little")
        content = file.read(size)
        if len(content) < size or len(head) < 4:
            raise ValueError("the Snappy stream is truncated")
        if head[0] == _SNAPPY:
            yield pa.decompress(content[4:], _size(content[4:]), "snappy", asbytes=True)
        elif head[0] == _STORED:
            yield content[4:]


def _size(block: bytes) -> int:
    """The varint at the beginning of a Snappy block: the number of bytes in it."""
    size = 0
    for place, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    return size


_FILES: dict[str, Callable[..., Any]] = {
    "gzip": gzip.open,
    "bzip2": bz2.open,
    "zstd": lambda file: zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True),
}
_PIECES: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    "deflate": _deflated,
    "snappy": _chunks,
    "lz4": partial(_arrow, "lz4"),
    "brotli": partial(_arrow, "brotli"),
}

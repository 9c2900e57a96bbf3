"""Reads the streams that `compress` writes. isal, brotli and cramjam do not read what they wrote: they would hide their
own faults. Only Snappy's framing format has no other reader.
"""

import bz2
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, BinaryIO

import cramjam
import pyarrow as pa
import zstandard

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.shared.compress import SNAPPY_START

_READ = 1 << 20
_SNAPPY_HEAD = 4


def decompressed(codec: str, source: BinaryIO, several: bool = False) -> Iterator[bytes]:
    """The decompressed stream, piece by piece.

    :param several: a gzip stream may have several members, as a zstd stream has several frames.
    :raises IntegrityError: `source` is not exactly one complete stream of the codec. Whole frames may be missing or
        repeated (zstd, snappy, lz4, brotli): the records in them tell.
    """
    return _gzip(source, several=True) if several and codec == "gzip" else _READERS[codec](source)


def _plain(source: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: source.read(_READ), b"")


def _streams(codec: str, start: Callable[[], Any], source: BinaryIO, several: bool = False) -> Iterator[bytes]:
    """One stream that says where it ends, or several, one after the other.

    :param start: makes a decompressor with the interface of zlib's.
    """
    decompressor, data = start(), b""
    while data := data or source.read(_READ):
        if decompressor.eof:
            if not several:
                raise IntegrityError(f"the {codec} data has additional bytes after its end")
            decompressor = start()
        try:
            plain = decompressor.decompress(data)
        except (zlib.error, zstandard.ZstdError, OSError) as error:
            raise _damaged(codec, error) from error
        yield plain
        data = decompressor.unused_data
    if not decompressor.eof:
        raise _truncated(codec)


def _arrow(codec: str, source: BinaryIO) -> Iterator[bytes]:
    """A codec that pyarrow reads as a stream."""
    # pyarrow closes the file that it reads at the latest when it forgets it; the source is somebody else's.
    lent = SimpleNamespace(read=source.read, tell=source.tell, closed=False, close=lambda: None)
    file = pa.PythonFile(lent, mode="r")
    stream = pa.CompressedInputStream(file, codec)
    while True:
        try:
            piece = stream.read(_READ)
        except OSError as error:
            # pyarrow passes the source's own errors on; those of the codec have no number.
            if type(error) is not OSError or error.errno is not None:
                raise
            raise _damaged(codec, error) from error
        if not piece:
            break
        yield piece
    if not file.tell():
        raise _truncated(codec)


def _snappy(source: BinaryIO) -> Iterator[bytes]:
    """Chunks of the framing format, each with a checksum: a byte of type, three bytes of length, the content.

    https://github.com/google/snappy/blob/main/framing_format.txt
    """
    pending = source.read(_READ)
    if not pending.startswith(SNAPPY_START):
        raise _truncated("snappy") if SNAPPY_START.startswith(pending) else _damaged("snappy", "it has another start")
    pending = pending[len(SNAPPY_START) :]
    while pending := pending + source.read(_READ):
        end = 0
        while end + _SNAPPY_HEAD <= len(pending):
            after = end + _SNAPPY_HEAD + int.from_bytes(pending[end + 1 : end + _SNAPPY_HEAD], "little")
            if after > len(pending):
                break
            end = after
        if not end:
            raise _truncated("snappy")
        try:
            yield bytes(cramjam.snappy.decompress(SNAPPY_START + pending[:end]))
        except cramjam.DecompressionError as error:
            raise _damaged("snappy", error) from error
        pending = pending[end:]


def _damaged(codec: str, error: object) -> IntegrityError:
    return IntegrityError(f"damaged {codec} data: {error}")


def _truncated(codec: str) -> IntegrityError:
    return IntegrityError(f"the {codec} data is truncated")


_gzip = partial(_streams, "gzip", partial(zlib.decompressobj, 16 + zlib.MAX_WBITS))
_READERS: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    "none": _plain,
    "gzip": _gzip,
    "zstd": partial(_streams, "zstd", lambda: zstandard.ZstdDecompressor().decompressobj(), several=True),
    "snappy": _snappy,
    "lz4": partial(_arrow, "lz4"),
    "brotli": partial(_arrow, "brotli"),
    "bzip2": partial(_streams, "bzip2", bz2.BZ2Decompressor),
    "deflate": partial(_streams, "deflate", zlib.decompressobj),
}


def whole(pieces: Iterator[bytes], end_of: Callable[[bytes], int], what: str, name: str) -> Iterator[bytes]:
    """The same bytes in pieces of whole rows.

    :param end_of: where in a piece its last row ends; 0 if none does. It is called once for each piece, in order.
    :param what, name: a row, and the object's key, for the error.
    :raises IntegrityError: the stream ends within a row.
    """
    pending: list[bytes] = []
    for piece in pieces:
        end = end_of(piece)
        if end:
            yield b"".join([*pending, piece[:end]])
            pending = []
        if end < len(piece):
            pending.append(piece[end:])
    if pending:
        raise IntegrityError(f"{name} ends in the middle of a {what}")

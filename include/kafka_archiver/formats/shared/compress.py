"""The codecs of text formats: one compressed stream.

The output of a compressor may depend on how its input is sliced (isal's does). So the stream is first cut into slices
of a fixed size, counted from its beginning. The output then depends on the stream alone.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

import zstandard
from isal import isal_zlib

from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.base import Buffer

# 48 open objects hold 12 MiB; larger slices make the compressors neither faster nor their output smaller.
SLICE = 256 << 10
# isal's level 2 writes as few bytes as zlib's level 1, with a quarter of the CPU. isal writes mtime 0 and OS byte 255.
GZIP_LEVEL = 2
# A window of 1 MiB instead of level 3's 2 MiB: an open object takes 2.5 MB of state, and the output is as small.
ZSTD = zstandard.ZstdCompressionParameters.from_level(3, window_log=20, write_checksum=True)
# Slices a zstd frame: frames of 8 MiB can be read in parallel, and the first one alone.
FRAME = 32
_GZIP_FORMAT = 16 + zlib.MAX_WBITS
_READ = 1 << 20


class _Compressor(Protocol):
    def compress(self, data: Buffer) -> bytes: ...
    def flush(self) -> bytes: ...


class _ZstdFrames:
    """Consecutive frames of `FRAME` slices each; the last one may be shorter."""

    def __init__(self) -> None:
        self._maker = zstandard.ZstdCompressor(compression_params=ZSTD)
        self._frame = self._maker.compressobj()
        self._slices = 0

    def compress(self, data: Buffer) -> bytes:
        """Take a slice of the stream; return the bytes that are ready."""
        ended = b""
        if self._slices == FRAME:
            ended, self._slices, self._frame = self._frame.flush(), 0, self._maker.compressobj()
        self._slices += 1
        return ended + self._frame.compress(data)

    def flush(self) -> bytes:
        """Return the rest of the bytes."""
        return self._frame.flush()


_COMPRESSORS: dict[str, Callable[[], _Compressor]] = {
    "gzip": lambda: isal_zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORMAT),
    "zstd": _ZstdFrames,
}


class Plain:
    """A stream without compression."""

    pending = 0

    def write(self, data: Buffer) -> list[Buffer]:
        """Take bytes of the stream; return the bytes that are ready."""
        return [data]

    def finish(self) -> list[Buffer]:
        """Return the rest of the bytes."""
        return []


class Compressed:
    """A stream as one gzip member, or as zstd frames."""

    def __init__(self, codec: str) -> None:
        self._compressor = _COMPRESSORS[codec]()
        self._tail = bytearray()

    @property
    def pending(self) -> int:
        """Bytes of the slice that is not full yet."""
        return len(self._tail)

    def write(self, data: Buffer) -> list[Buffer]:
        """Take bytes of the stream; return the bytes that are ready."""
        view = memoryview(data)
        ready = []
        if self._tail:
            missing = SLICE - len(self._tail)
            self._tail += view[:missing]
            view = view[missing:]
            if len(self._tail) == SLICE:
                ready.append(self._compressor.compress(self._tail))
                self._tail.clear()
        whole = len(view) - len(view) % SLICE
        ready += [self._compressor.compress(view[at : at + SLICE]) for at in range(0, whole, SLICE)]
        self._tail += view[whole:]
        return [piece for piece in ready if piece]

    def finish(self) -> list[Buffer]:
        """Return the rest of the bytes."""
        rest = self._compressor.compress(self._tail) if self._tail else b""
        return [rest + self._compressor.flush()]


def compressed(codec: str) -> Plain | Compressed:
    """A new stream of the codec none, gzip or zstd."""
    return Plain() if codec == "none" else Compressed(codec)


def decompressed(codec: str, source: BinaryIO, several: bool = False) -> Iterator[bytes]:
    """The decompressed stream, piece by piece. zlib, not isal, reads gzip: isal would hide its own faults.

    :param several: a gzip stream may have several members.
    :raises IntegrityError: `source` is not exactly one complete stream of the codec.
    """
    if codec == "zstd":
        yield from _frames(source)
    elif codec == "gzip":
        yield from _members(source, several)
    else:
        yield from iter(lambda: source.read(_READ), b"")


def _members(source: BinaryIO, several: bool) -> Iterator[bytes]:
    member, data = zlib.decompressobj(_GZIP_FORMAT), b""
    try:
        while data := data or source.read(_READ):
            if member.eof:
                if not several:
                    raise IntegrityError("the gzip data has additional bytes after its end")
                member = zlib.decompressobj(_GZIP_FORMAT)
            yield member.decompress(data)
            data = member.unused_data
    except zlib.error as error:
        raise IntegrityError(f"damaged gzip data: {error}") from error
    if not member.eof:
        raise IntegrityError("the gzip data is truncated")


def _frames(source: BinaryIO) -> Iterator[bytes]:
    maker = zstandard.ZstdDecompressor()
    frame, data = maker.decompressobj(), b""
    try:
        while data := data or source.read(_READ):
            if frame.eof:
                frame = maker.decompressobj()
            yield frame.decompress(data)
            data = frame.unused_data
    except zstandard.ZstdError as error:
        raise IntegrityError(f"damaged zstd data: {error}") from error
    if not frame.eof:
        raise IntegrityError("the zstd data is truncated")

"""Bytes as one compressed stream: the codecs of text formats.

A compressor's output may depend on how its input is sliced (isal's does), so a stream is cut into slices of a fixed
size first, counted from its beginning. What is written is then a function of the stream alone.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

import zstandard
from isal import isal_zlib

from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.base import Buffer

# Small enough that 48 open objects hold 12 MiB, large enough that the compressors' speed and output are at their best.
SLICE = 256 << 10
# isal's level 2 is as small as zlib's level 1 at a quarter of its CPU; it writes mtime 0 and the OS byte 255.
GZIP_LEVEL = 2
# A window of 1 MiB (level 3 has 2) keeps the state of an open object at 2.5 MB; the output is as small.
ZSTD = zstandard.ZstdCompressionParameters.from_level(3, window_log=20, write_checksum=True)
# Of the stream, in slices: frames of 8 MiB can be read side by side, and the first without the rest.
FRAME = 32
_GZIP_FORMAT = 16 + zlib.MAX_WBITS
_READ = 1 << 20


class _Compressor(Protocol):
    def compress(self, data: Buffer) -> bytes: ...
    def flush(self) -> bytes: ...


class _ZstdFrames:
    """One frame behind the other, each of `FRAME` slices, the last one of what is left."""

    def __init__(self) -> None:
        self._maker = zstandard.ZstdCompressor(compression_params=ZSTD)
        self._frame = self._maker.compressobj()
        self._slices = 0

    def compress(self, data: Buffer) -> bytes:
        """A slice of the stream in, what is ready out."""
        ended = b""
        if self._slices == FRAME:
            ended, self._slices, self._frame = self._frame.flush(), 0, self._maker.compressobj()
        self._slices += 1
        return ended + self._frame.compress(data)

    def flush(self) -> bytes:
        """The rest."""
        return self._frame.flush()


_COMPRESSORS: dict[str, Callable[[], _Compressor]] = {
    "gzip": lambda: isal_zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORMAT),
    "zstd": _ZstdFrames,
}


class Plain:
    """A stream that is stored as it is."""

    pending = 0

    def write(self, data: Buffer) -> list[Buffer]:
        """Bytes of the stream in, what is ready to be stored out."""
        return [data]

    def finish(self) -> list[Buffer]:
        """The rest."""
        return []


class Compressed:
    """A stream that is stored as one gzip member or as zstd frames."""

    def __init__(self, codec: str) -> None:
        self._compressor = _COMPRESSORS[codec]()
        self._tail = bytearray()

    @property
    def pending(self) -> int:
        """Bytes that wait for their slice to be full."""
        return len(self._tail)

    def write(self, data: Buffer) -> list[Buffer]:
        """Bytes of the stream in, what is ready to be stored out."""
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
        """The rest."""
        rest = self._compressor.compress(self._tail) if self._tail else b""
        return [rest + self._compressor.flush()]


def compressed(codec: str) -> Plain | Compressed:
    """A new stream of the codec none, gzip or zstd."""
    return Plain() if codec == "none" else Compressed(codec)


def decompressed(codec: str, source: BinaryIO) -> Iterator[bytes]:
    """The stream back, piece by piece. Deliberately not by isal: what it wrote is read by zlib.

    :raises IntegrityError: `source` is not exactly one whole stream of the codec.
    """
    if codec == "zstd":
        yield from _frames(source)
        return
    if codec == "none":
        yield from iter(lambda: source.read(_READ), b"")
        return
    decompressor = zlib.decompressobj(_GZIP_FORMAT)
    try:
        while not decompressor.eof and (piece := source.read(_READ)):
            yield decompressor.decompress(piece)
    except zlib.error as error:
        raise IntegrityError(f"damaged gzip data: {error}") from error
    if not decompressor.eof:
        raise IntegrityError("the gzip data end too early")
    if decompressor.unused_data or source.read(1):
        raise IntegrityError("something follows the gzip data")


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
        raise IntegrityError("the zstd data end too early")

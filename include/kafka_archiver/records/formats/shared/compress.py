"""The codecs of text formats: one compressed stream.

The output of a compressor may depend on how its input is sliced (isal's does). So the stream is first cut into slices
of a fixed size, counted from its beginning. The output then depends on the stream alone.
"""

import bz2
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import brotli
import cramjam
import pyarrow as pa
import zstandard

from kafka_archiver.records.formats.base import Buffer, Encoder, Target
from kafka_archiver.records.formats.shared.deflate import Gzip, Zlib

# 48 open objects hold 12 MiB; larger slices make the compressors neither faster nor their output smaller.
SLICE = 256 << 10
# By the rules of a plan, the level: 2 gives 1 to 2 % more bytes than 3, for 20 to 34 % less CPU. A window of 1 MiB: an
# open object takes 2.5 MB of state, and the output is as small.
ZSTD = {
    rules: zstandard.ZstdCompressionParameters.from_level(level, window_log=20, write_checksum=True)
    for rules, level in ((1, 3), (2, 2))
}
# Slices a zstd frame: frames of 8 MiB can be read in parallel, and the first one alone.
FRAME = 32
# A window of 1 MiB and 3 MB of state. Quality 5 takes twice the CPU, for files 14 % smaller.
BROTLI = {"quality": 4, "lgwin": 20}
# Level, checksum of the content, linked blocks. Level 4, the default, takes four times the CPU.
LZ4 = (1, True, True)
# The beginning of every stream in Snappy's framing format.
SNAPPY_START = b"\xff\x06\x00\x00sNaPpY"
# Gives the bytes of a batch, in pieces of whole records.
Pieces = Callable[[pa.RecordBatch, Target], Iterable[Buffer]]


class _Compressor(Protocol):
    def compress(self, data: Buffer, /) -> bytes:
        """Take a slice of the stream; return the bytes that are ready."""

    def flush(self) -> bytes:
        """Return the rest of the bytes."""


class Stream(Protocol):
    """A stream of bytes that is compressed, or not."""

    @property
    def pending(self) -> int:
        """Bytes of the slice that is not full yet."""

    def write(self, data: Buffer) -> list[Buffer]:
        """Take bytes of the stream; return the bytes that are ready."""

    def finish(self) -> list[Buffer]:
        """Return the rest of the bytes."""


class _ZstdFrames:
    """Consecutive frames of `FRAME` slices each; the last one may be shorter."""

    def __init__(self, rules: int = 1) -> None:
        self._maker = zstandard.ZstdCompressor(compression_params=ZSTD[rules])
        self._frame = self._maker.compressobj()
        self._slices = 0

    def compress(self, data: Buffer) -> bytes:
        ended = b""
        if self._slices == FRAME:
            ended, self._slices, self._frame = self._frame.flush(), 0, self._maker.compressobj()
        self._slices += 1
        return ended + self._frame.compress(data)

    def flush(self) -> bytes:
        return self._frame.flush()


class _Flushed:
    """A compressor of cramjam, emptied after each slice: it would hold all of its output."""

    def __init__(self, compressor: Any, start: bytes = b"") -> None:
        self._compressor, self._ready = compressor, start

    def compress(self, data: Buffer) -> bytes:
        self._compressor.compress(bytes(data))
        ready, self._ready = bytes(self._compressor.flush()), b""
        return ready

    def flush(self) -> bytes:
        # Of an empty stream, its start.
        return self._ready + bytes(self._compressor.finish())


class _Brotli:
    """A Brotli stream."""

    def __init__(self) -> None:
        compressor = brotli.Compressor(**BROTLI)
        self.compress: Callable[[Buffer], bytes] = compressor.process
        self.flush: Callable[[], bytes] = compressor.finish


_COMPRESSORS: dict[str, Callable[[], _Compressor]] = {
    "gzip": Gzip,
    "snappy": lambda: _Flushed(cramjam.snappy.Compressor(), SNAPPY_START),
    "lz4": lambda: _Flushed(cramjam.lz4.Compressor(*LZ4)),
    "brotli": _Brotli,
    "bzip2": bz2.BZ2Compressor,
    "deflate": Zlib,
}


class Uncompressed:
    """A stream without compression."""

    pending = 0

    def write(self, data: Buffer) -> list[Buffer]:
        return [data]

    def finish(self) -> list[Buffer]:
        return []


class Compressed:
    """A stream as one gzip member, as zstd frames, or as one stream of another codec."""

    def __init__(self, codec: str, rules: int) -> None:
        self._compressor: _Compressor = _ZstdFrames(rules) if codec == "zstd" else _COMPRESSORS[codec]()
        self._tail = bytearray()

    @property
    def pending(self) -> int:
        return len(self._tail)

    def write(self, data: Buffer) -> list[Buffer]:
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
        last_slice = self._compressor.compress(self._tail) if self._tail else b""
        return [last_slice + self._compressor.flush()]


def compressed(codec: str, rules: int = 1) -> Stream:
    """Return a new stream of a codec of `codecs.SUFFIXES`. :param rules: see `codec_rules` of `model.settings`."""
    return Uncompressed() if codec == "none" else Compressed(codec, rules)


class StreamEncoder(Encoder):
    """Encodes records as bytes of one stream.

    :param pieces: makes the bytes of a batch.
    :param head: the bytes before the first record.
    """

    def __init__(self, target: Target, pieces: Pieces, head: bytes = b"") -> None:
        self._target = target
        self._pieces = pieces
        self._stream = compressed(target.settings.codec, target.settings.codec_rules)
        self._ready: list[Buffer] = self._stream.write(head) if head else []

    @property
    def pending(self) -> int:
        return self._stream.pending

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        ready, self._ready = self._ready, []
        if batch.num_rows:
            for piece in self._pieces(batch, self._target):
                ready += self._stream.write(piece)
        return ready

    def finish(self) -> list[Buffer]:
        return [*self._ready, *self._stream.finish()]

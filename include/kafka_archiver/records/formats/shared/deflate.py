"""DEFLATE, gzip and zlib streams by ISA-L, whose bytes depend on what is compressed and on nothing else.

ISA-L hashes its state's address in memory with the first byte of a stream (`write_first_byte` in
igzip_icf_body_h1_gr_bt.asm reads a register that still holds the pointer), so about one stream in 20,000 comes
out different in another process. It does not run that code if it has a dictionary. So the first byte is written as a
stored block, and is the dictionary of the rest.
"""

import zlib
from collections.abc import Callable

from isal import isal_zlib

from kafka_archiver.records.formats.base import Buffer

# Level 2 writes as few bytes as zlib's level 1, with a quarter of the CPU.
_LEVEL = 2
# A stored block of one byte that is not the last block: its header, its length, and the complement of its length.
_STORED_BYTE = b"\x00\x01\x00\xfe\xff"
# A last block without data.
_END = b"\x03\x00"
# No name, no time, unknown operating system.
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
# A window of 32 KiB, the fastest level.
_ZLIB_HEADER = b"\x78\x01"


class Deflate:
    """A raw DEFLATE stream. The caller cuts the input into slices: the bytes depend on them."""

    def __init__(self) -> None:
        self._rest: isal_zlib.Compress | None = None

    def compress(self, data: Buffer) -> bytes:
        view = memoryview(data)
        if self._rest is not None:
            return self._rest.compress(view)
        if not view:
            return b""
        first = bytes(view[:1])
        self._rest = isal_zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=first)
        return _STORED_BYTE + first + self._rest.compress(view[1:])

    def flush(self) -> bytes:
        return _END if self._rest is None else self._rest.flush()


class _Framed:
    """A DEFLATE stream between a header and a trailer."""

    def __init__(self, header: bytes, checksum: Callable[[Buffer, int], int], start: int) -> None:
        self._deflate, self._header = Deflate(), header
        self._checksum, self._sum, self._size = checksum, start, 0

    def compress(self, data: Buffer) -> bytes:
        header, self._header = self._header, b""
        self._sum = self._checksum(data, self._sum)
        self._size += len(data)
        return header + self._deflate.compress(data)

    def _end(self) -> bytes:
        return self._header + self._deflate.flush()


class Gzip(_Framed):
    """A gzip member."""

    def __init__(self) -> None:
        super().__init__(_GZIP_HEADER, isal_zlib.crc32, 0)

    def flush(self) -> bytes:
        return self._end() + self._sum.to_bytes(4, "little") + (self._size & 0xFFFF_FFFF).to_bytes(4, "little")


class Zlib(_Framed):
    """A zlib stream: what HTTP and Hadoop call deflate."""

    def __init__(self) -> None:
        super().__init__(_ZLIB_HEADER, isal_zlib.adler32, 1)

    def flush(self) -> bytes:
        return self._end() + self._sum.to_bytes(4, "big")

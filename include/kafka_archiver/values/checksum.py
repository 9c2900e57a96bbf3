"""An object's checksum: the CRC-32 of all its bytes, which every S3 with additional checksums knows. Pure.

By ISA-L, for the writer and the readers. The audit checks with zlib instead.
"""

from collections.abc import Iterable

from isal import isal_zlib


def crc32(data: bytes | memoryview, before: int = 0) -> int:
    """The CRC-32 of bytes that follow other bytes, whose CRC-32 is `before`."""
    return int(isal_zlib.crc32(data, before))


def joined(parts: Iterable[tuple[int, int]]) -> int:
    """The CRC-32 of consecutive parts.

    :param parts: the CRC-32 and the size in bytes of each part, in order.
    """
    whole = 0
    for crc, size in parts:
        whole = isal_zlib.crc32_combine(whole, crc, size)
    return whole


def spelt(crc: int) -> str:
    """A checksum as documents have it."""
    return f"crc32:{crc:08x}"

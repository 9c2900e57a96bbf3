"""An object's checksum: the CRC-32 of all its bytes, which every S3 with additional checksums knows. Pure.

By ISA-L, and so for the writer. Whatever is read back is checked by zlib.
"""

from collections.abc import Iterable

from isal import isal_zlib


def crc32(data: bytes | memoryview, before: int = 0) -> int:
    """The CRC-32 of bytes, behind others with the CRC-32 `before`."""
    return int(isal_zlib.crc32(data, before))


def joined(parts: Iterable[tuple[int, int]]) -> int:
    """The CRC-32 of a whole.

    :param parts: of each its CRC-32 and how many bytes it has, from the first to the last.
    """
    whole = 0
    for crc, size in parts:
        whole = isal_zlib.crc32_combine(whole, crc, size)
    return whole


def spelt(crc: int) -> str:
    """A checksum as documents have it."""
    return f"crc32:{crc:08x}"

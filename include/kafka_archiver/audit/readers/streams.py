"""Decompresses streams of text, with other libraries than the formats."""

import gzip
from typing import BinaryIO

import zstandard

READ = 1 << 20


def plain(file: BinaryIO, codec: str) -> BinaryIO:
    """The decompressed stream."""
    if codec == "gzip":
        return gzip.open(file)  # type: ignore[return-value]
    if codec == "zstd":
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return file

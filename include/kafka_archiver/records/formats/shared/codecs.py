"""The codecs of text formats, without importing Arrow or a compressor: their file extensions and their libraries.

`compress` has their levels, `deflate` those of gzip. The checksums of what they write are in `known_bytes.json`.
"""

import json
import pkgutil
from collections.abc import Mapping

# The extension of each codec of `compress`. Snappy's framing format is .sz; .snappy is Hadoop's own format.
SUFFIXES: Mapping[str, str] = {
    "none": "",
    "gzip": ".gz",
    "zstd": ".zst",
    "snappy": ".sz",
    "lz4": ".lz4",
    "brotli": ".br",
    "bzip2": ".bz2",
    "deflate": ".deflate",
}
_COMPRESSORS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "gzip": ("isal",),
    "zstd": ("zstandard",),
    "snappy": ("cramjam",),
    "lz4": ("cramjam",),
    "brotli": ("brotli",),
    "bzip2": ("bz2",),
    "deflate": ("isal",),
}


def extensions(own: str) -> dict[str, str]:
    """The extension of each codec for a format, for example `.csv.gz` for `.csv`."""
    return {codec: own + suffix for codec, suffix in SUFFIXES.items()}


def libraries_by_codec(*libraries: str) -> dict[str, tuple[str, ...]]:
    """The libraries that make the bytes, by codec: the compressor, then those of the format."""
    return {codec: (*compressor, *libraries) for codec, compressor in _COMPRESSORS.items()}


# By format, then by codec and content, as `Format.known` has them. Read from a zip file, too.
_KNOWN: Mapping[str, Mapping[str, str]] = json.loads(
    pkgutil.get_data("kafka_archiver.records.formats", "known_bytes.json") or b"{}"
)


def known_bytes_of(name: str) -> Mapping[str, str]:
    """Return the checksums that `known_bytes` compares for a format of this package."""
    return _KNOWN[name]

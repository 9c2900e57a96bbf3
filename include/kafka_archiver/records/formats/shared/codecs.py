"""The parts that formats of this package share, such as codecs of text formats. Imports no Arrow and no compressor.

`compress` has their levels, `deflate` those of gzip. The checksums of what they write are in `known_bytes.json`.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from kafka_archiver.model.settings import Content, Settings
    from kafka_archiver.records.formats.base import Fitting

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


class OwnFormat:
    """A format of this package, see `base.Format`: by default one of text, or one that holds every record.

    Its methods import what encodes and reads: planning needs names and options every hour, but no Arrow.
    """

    name: ClassVar[str]
    extensions: ClassVar[Mapping[str, str]]
    default_codec: ClassVar[str] = "gzip"
    contents: ClassVar[frozenset[Content]] = frozenset({"value", "record"})
    typed: ClassVar[frozenset[Content]] = frozenset()
    libraries: ClassVar[Mapping[str, tuple[str, ...]]] = libraries_by_codec("orjson", "pyarrow")

    @property
    def known(self) -> Mapping[str, str]:
        """The checksums of `known_bytes.json`."""
        return _KNOWN[self.name]

    def stage(self, settings: Settings) -> Fitting | None:  # noqa: ARG002 - the protocol's
        """Return no stage: every record can be written."""
        return None


class StreamFormat(OwnFormat):
    """A format whose objects are one compressed stream each."""


class ValuesFormat(StreamFormat):
    """A stream of nothing but values, and what is between them."""

    encoding = 4
    contents = frozenset({"value"})
    libraries = libraries_by_codec("pyarrow")

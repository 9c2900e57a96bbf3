"""The libraries that make the bytes of `compress`, by codec; without Arrow, as formats are named."""

from collections.abc import Mapping

MAKERS: Mapping[str, tuple[str, ...]] = {
    "none": ("orjson", "pyarrow"),
    "gzip": ("isal", "orjson", "pyarrow"),
    "zstd": ("zstandard", "orjson", "pyarrow"),
}

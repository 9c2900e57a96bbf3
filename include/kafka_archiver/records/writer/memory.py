"""The memory that a writing process frees after a row group and needs again for the next one."""

import ctypes
import os

import pyarrow as pa

# The first numbers are mallopt's. Freed blocks of so many bytes go back to the system: the largest value of glibc.
_MMAP_THRESHOLD, _LARGE = -3, 32 << 20
# The bytes that stay free at the end of the heap: enough for a row group and its encoding.
_TRIM_THRESHOLD, _KEPT = -1, 128 << 20
# Somebody who sets one of these variables has chosen another way.
CHOICES = ("ARROW_DEFAULT_MEMORY_POOL", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> None:
    """Have this process keep what it frees, and Arrow use the same heap.

    Arrow's own allocator gives its pages back within 10 ms, and the system clears each page that it gives again: a
    sixth of the CPU of typed Parquet. Does nothing without glibc, or if the environment has one of `CHOICES`.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or any(name in os.environ for name in CHOICES):
        return
    mallopt(_MMAP_THRESHOLD, _LARGE)
    mallopt(_TRIM_THRESHOLD, _KEPT)
    pa.set_memory_pool(pa.system_memory_pool())

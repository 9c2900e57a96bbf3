"""Memory that this process has freed, and soon needs again."""

import ctypes
import os

import pyarrow as pa

# Of mallopt. From so many bytes on, memory goes back to the system once it is freed: the most that glibc takes …
_MMAP_THRESHOLD, _LARGE = -3, 32 << 20
# … and so much, for a row group and its encoding, stays at the end of the heap.
_TRIM_THRESHOLD, _KEPT = -1, 128 << 20
# Whoever sets one of these has decided otherwise.
CHOICES = ("ARROW_DEFAULT_MEMORY_POOL", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> None:
    """Keep it: the system clears each page that it gives. Arrow's own allocator gives its pages back within 10 ms, and
    a sixth of the CPU of typed Parquet was to get them again.

    Only with glibc's allocator: others have their own rules.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or any(name in os.environ for name in CHOICES):
        return
    mallopt(_MMAP_THRESHOLD, _LARGE)
    mallopt(_TRIM_THRESHOLD, _KEPT)
    pa.set_memory_pool(pa.system_memory_pool())

"""python -m kafka_archiver.records.native.compile: compiles the package's C beside its source, if there is a compiler.

Standard library only. Without the binaries, the native reader and the decoders work in Python, and give the same.
"""

import hashlib
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
# Below the package.
SOURCES = ("kafka/drain/drain.c", "records/rows/rows.c")
# They link to nothing, not to a libc either: any process that loads them has memcpy.
_FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared", *(("-nostdlib",) if sys.platform == "linux" else ()))


def binary_name(stem: str, source: bytes) -> str:
    """Return the name of the binary of this source on this platform.

    :param stem: the name of the source's file, without `.c`.
    """
    return f"{_prefix(stem, source)}{sys.platform}-{platform.machine()}.so"


def _prefix(stem: str, source: bytes) -> str:
    return f"{stem}-{hashlib.sha256(source).hexdigest()[:12]}-"


def compile_source(source: Path, flags: Sequence[str] = _FLAGS) -> Path:
    """Compile a source unless its binary is beside it, delete binaries of other versions, and return the path.

    :raises OSError: there is no compiler (`CC`, or cc), or it fails.
    """
    text = source.read_bytes()
    binary = source.with_name(binary_name(source.stem, text))
    if binary.exists():
        return binary
    # Another process may load or compile it meanwhile.
    partial = binary.with_suffix(f".{os.getpid()}")
    command = [*shlex.split(os.environ.get("CC") or "cc"), *flags, "-o", str(partial), str(source)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"{shlex.join(command)} failed: {done.stderr.strip()}")
        for other in source.parent.glob(f"{source.stem}-*.so"):
            # Those of other platforms may be the same source.
            if not other.name.startswith(_prefix(source.stem, text)):
                other.unlink()
        partial.replace(binary)
    finally:
        partial.unlink(missing_ok=True)
    return binary


def compile_all(package: Path = PACKAGE) -> Iterator[Path]:
    """Compile the sources of a package; yield the paths. :raises OSError: as `compile_source`."""
    for source in SOURCES:
        yield compile_source(package / source)


if __name__ == "__main__":
    try:
        for path in compile_all():
            sys.stdout.write(f"{path}\n")
    except OSError as error:
        sys.exit(f"not compiled, so records are read and decoded more slowly: {error}")

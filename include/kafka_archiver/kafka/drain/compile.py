"""python -m kafka_archiver.kafka.drain.compile: compiles drain.c beside itself, if there is a C compiler.

Standard library only. Without the binary, the native reader makes a Python object of each record, and gives the same.
"""

import hashlib
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
SOURCE = "drain.c"
# It links to nothing, not to a libc either: any process that loads it has memcpy.
_FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared", *(("-nostdlib",) if sys.platform == "linux" else ()))


def binary_name(source: bytes) -> str:
    """Return the name of the binary of this source on this platform."""
    return f"{_prefix(source)}{sys.platform}-{platform.machine()}.so"


def _prefix(source: bytes) -> str:
    return f"drain-{hashlib.sha256(source).hexdigest()[:12]}-"


def compile_drain(folder: Path = FOLDER, flags: Sequence[str] = _FLAGS) -> Path:
    """Compile `folder`'s drain.c unless its binary is there, delete binaries of other sources, and return the path.

    :raises OSError: there is no compiler (`CC`, or cc), or it fails.
    """
    source = folder / SOURCE
    text = source.read_bytes()
    binary = folder / binary_name(text)
    if binary.exists():
        return binary
    # Another process may load or compile it meanwhile.
    partial = binary.with_suffix(f".{os.getpid()}")
    command = [*shlex.split(os.environ.get("CC") or "cc"), *flags, "-o", str(partial), str(source)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"{shlex.join(command)} failed: {done.stderr.strip()}")
        for other in folder.glob("drain-*.so"):
            # Those of other platforms may be the same source.
            if not other.name.startswith(_prefix(text)):
                other.unlink()
        partial.replace(binary)
    finally:
        partial.unlink(missing_ok=True)
    return binary


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{compile_drain()}\n")
    except OSError as error:
        sys.exit(f"not compiled, so records are read more slowly: {error}")

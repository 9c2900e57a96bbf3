"""Finds and loads the binaries of the package's C."""

import ctypes
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from kafka_archiver.records.native.compile import binary_name

Opened = TypeVar("Opened")
# Set to `python`, records are read and decoded without C.
SWITCH = "KAFKA_ARCHIVER_READER"


class Binary(Generic[Opened]):
    """The functions of a binary, which a process opens once, when it needs them.

    :param opens: returns them. :raises OSError: this process goes on in Python.
    """

    def __init__(self, opens: Callable[[], Opened]) -> None:
        self._opens = opens

    @cached_property
    def _opened(self) -> tuple[Opened | None, str]:
        try:
            return self._opens(), ""
        except OSError as error:
            return None, str(error)

    def library(self) -> Opened | None:
        """Return the functions; None: this process works without them, and `why_not` says why."""
        return self._opened[0]

    def why_not(self) -> str:
        """Return the reason why this process works without them, or ""."""
        return self._opened[1]


def load(package: str, source: str) -> ctypes.CDLL:
    """Load the binary of a source.

    :raises OSError: there is none for this platform, it cannot be loaded, or `SWITCH` says python.
    """
    if os.environ.get(SWITCH) == "python":
        raise OSError(f"{SWITCH} is python")
    folder = files(package)
    name = binary_name(PurePosixPath(source).stem, (folder / source).read_bytes())
    if not (folder / name).is_file():
        raise OSError(f"this installation has no {name}")
    # From a zip it is a temporary file, which is needed only until it is loaded.
    with as_file(folder / name) as path:
        return ctypes.CDLL(str(path))


def functions(library: ctypes.CDLL, prefix: str, types: Mapping[str, tuple[Any, ...]]) -> SimpleNamespace:
    """Return functions of a library under their names without the prefix.

    :param types: of each, the result and the arguments.
    :raises OSError: a function is missing.
    """
    namespace = SimpleNamespace()
    for name, (result, *arguments) in types.items():
        try:
            function = library[prefix + name]
        except AttributeError as error:
            raise OSError(str(error)) from error
        function.restype, function.argtypes = result, arguments
        setattr(namespace, name, function)
    return namespace

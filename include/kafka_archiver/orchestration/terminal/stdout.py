"""Standard output for a command's data alone.

A logger that was set up earlier keeps its stream, a library of C writes to the file descriptor, and a child process
inherits it: so the descriptor itself points to standard error while a command works, and the data have a copy of it.
"""

import functools
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import ParamSpec, TextIO

_P = ParamSpec("_P")

_STDOUT, _STDERR = 1, 2
# The stream of the command that works; None: no command does.
_stream: TextIO | None = None


def data_stream() -> TextIO:
    """Return the stream for data: the real standard output, also while everything else goes to standard error."""
    return _stream or sys.stdout


def say(line: str) -> None:
    """Write a line that is the command's result."""
    print(line, file=data_stream(), flush=True)


def for_data_alone(command: Callable[_P, None]) -> Callable[_P, None]:
    """Make a command that has standard output for its data alone: whatever else is written there goes to stderr."""

    @functools.wraps(command)
    def alone(*args: _P.args, **kwargs: _P.kwargs) -> None:
        with _data_alone():
            command(*args, **kwargs)

    return alone


@contextmanager
def _data_alone() -> Iterator[None]:
    """Within another one, do nothing."""
    global _stream
    if _stream:
        yield
        return
    with _real_stdout() as _stream:
        try:
            with redirect_stdout(sys.stderr):
                yield
        finally:
            _stream = None


@contextmanager
def _real_stdout() -> Iterator[TextIO]:
    """Give the real standard output. If it is the process's own, its descriptor is standard error meanwhile."""
    written = sys.stdout
    if not _is_descriptor(written):
        # Of a program that has this package as a library, or closed.
        yield written or io.StringIO()
        return
    written.flush()
    kept = os.dup(_STDOUT)
    os.dup2(_STDERR if sys.__stderr__ else _nowhere(), _STDOUT)
    try:
        with open(kept, "w", encoding=written.encoding, errors=written.errors, closefd=False) as stream:
            try:
                yield stream
                stream.flush()
            except BrokenPipeError:
                # As after `| head`: nobody reads what the buffers still have.
                os.dup2(_nowhere(), kept)
    finally:
        # What others have printed may be in the buffer.
        written.flush()
        os.dup2(kept, _STDOUT)
        os.close(kept)


def _is_descriptor(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.fileno() == _STDOUT
    except (OSError, ValueError):
        return False


def _nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY)

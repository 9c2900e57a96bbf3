"""Standard output for a command's data alone.

A logger that was set up earlier keeps its stream, a library of C writes to the file descriptor, and a child process
inherits it: so the descriptor itself points to standard error while a command works, and the data have a copy of it.
A process of one command is so from its start to its end, for Airflow's own log writes before and after: see `at_start`.
"""

import fcntl
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
# The copy of the real descriptor that the process has had from its start; None: a command makes its own.
_process_copy: int | None = None


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


def keep_for_data() -> None:
    """Point standard output to standard error until the process ends; only `data_stream` has the real one."""
    global _process_copy
    if _process_copy is None and _is_descriptor(sys.stdout):
        _process_copy = _swap_for_stderr()


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
    kept = _swap_for_stderr() if _process_copy is None else _process_copy
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
        if kept != _process_copy:
            os.dup2(kept, _STDOUT)
            os.close(kept)


def _swap_for_stderr() -> int:
    """Make standard output's descriptor that of standard error, and return a copy of what it was."""
    # Never 2, if that is closed: who writes errors there would write into the data.
    copy = fcntl.fcntl(_STDOUT, fcntl.F_DUPFD_CLOEXEC, 3)
    os.dup2(_STDERR if sys.__stderr__ else _nowhere(), _STDOUT)
    return copy


def _is_descriptor(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.fileno() == _STDOUT
    except (OSError, ValueError):
        return False


def _nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY)

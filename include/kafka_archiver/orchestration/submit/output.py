"""The output of spark-submit: its lines for the task's log, and the cause of a failed job."""

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafka_archiver.messages.errors import ArchiverError, Failure, PermanentError, TransientError
from kafka_archiver.spark.failures import MARK, OUT_OF_MEMORY_EXIT, PERMANENT_EXIT, TRANSIENT_EXIT, out_of_memory

# Java's lines ("26/11/21 05:00:04 WARN Utils: …") and the driver's ("2026-11-21 05:00:04,123 INFO …").
_STAMPED = re.compile(
    r"(?:\d\d/\d\d/\d\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{3}) "
    r"(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL) +(?P<text>.*)",
    re.DOTALL,
)
_LEVELS = {
    "TRACE": logging.DEBUG, "DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING,
    "WARNING": logging.WARNING, "ERROR": logging.ERROR, "FATAL": logging.CRITICAL, "CRITICAL": logging.CRITICAL,
}  # fmt: skip


def split_level(line: str) -> tuple[int, str]:
    """Split a line of spark-submit's output into its level (INFO if it has none) and its text without both stamps."""
    match = _STAMPED.fullmatch(line)
    return (_LEVELS[match["level"]], match["text"]) if match else (logging.INFO, line)


class LevelledLog:
    """A logger for spark-submit's output, which logs each line at its own level."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def info(self, text: str, *values: object) -> None:
        """Log a line of the output; with values it is Airflow's own message."""
        level, message = (logging.INFO, text) if values else split_level(text)
        self._log.log(level, message, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


# In cluster mode spark-submit always exits with 1. YARN and Kubernetes log the job's own exit code.
_LOGGED_CODE = re.compile(r"exit(?:ed with status| ?code:) (\d+)", re.IGNORECASE)
# It only repeats the exit code of the driver.
_CODE_AGAIN = "org.apache.spark.SparkUserAppException"
_EXCEPTION = re.compile(r"^(?:Exception in thread \"[^\"]*\" |Caused by: )?((?:[\w$]+\.)*\w*(?:Error|Exception)\b.*)")


class Verdict:
    """The cause of a failure, read from the output of spark-submit.

    `file`: where a driver on this machine writes the failure (kafka_archiver.messages.errors.Failure).
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._cause: str | None = None
        self._exception: str | None = None
        self._codes: set[int] = set()

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        """Pass the lines through, and note causes and exit codes."""
        for line in lines:
            text = line.strip()
            if text.startswith(MARK):
                self._cause = text.removeprefix(MARK)
            elif (match := _EXCEPTION.match(text)) and not match[1].startswith(_CODE_AGAIN):
                self._exception = match[1]
            if code := _LOGGED_CODE.search(text):
                self._codes.add(int(code[1]))
            yield line

    def error(self, code: int | None) -> ArchiverError:
        """Return the error to raise.

        :param code: spark-submit's exit code, negative for the signal that killed it.
        """
        # The file is missing if the driver is on another machine or was killed, and cut off if the disk was full.
        with suppress(OSError, ValueError):
            return Failure.from_json(self.file.read_text(encoding="ascii")).error()
        known = self._cause or self._exception
        cause = known or "the job logged no cause; see the end of the task's log"
        codes = {code, *self._codes}
        if PERMANENT_EXIT in codes:
            return PermanentError(cause)
        if TRANSIENT_EXIT in codes:
            return TransientError(cause)
        if OUT_OF_MEMORY_EXIT in codes and (full := out_of_memory(cause)):
            return full
        if code is not None and (code < 0 or code > 128):
            signal = -code if code < 0 else code - 128
            killed = f"spark-submit was killed by signal {signal} (out of memory, or by hand)"
            return TransientError(f"{killed}: {known}" if known else killed)
        return TransientError(f"the Spark job ended with exit code {code}: {cause}")

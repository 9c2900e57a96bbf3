"""One time and one level in each line of the task's log: Airflow's own."""

import logging
import re
from typing import Any

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

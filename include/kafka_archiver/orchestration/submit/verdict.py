"""The cause of a failed Spark job: from the file of a driver on this machine, else from its output and exit code."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from kafka_archiver.messages.errors import ArchiverError, Failure, PermanentError, TransientError
from kafka_archiver.spark.failures import MARK, OUT_OF_MEMORY_EXIT, PERMANENT_EXIT, TRANSIENT_EXIT, out_of_memory

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

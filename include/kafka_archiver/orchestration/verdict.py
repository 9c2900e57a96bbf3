"""What a Spark job says of its failure: by a value where its driver ran here, else by its output and exit code."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from kafka_archiver.errors import ArchiverError, Failure, PermanentError, TransientError
from kafka_archiver.spark.failures import MARK, OUT_OF_MEMORY_EXIT, PERMANENT_EXIT, TRANSIENT_EXIT, out_of_memory

# In cluster mode spark-submit exits with 1 whatever the job did, and YARN or Kubernetes log the job's own code.
_LOGGED_CODE = re.compile(r"exit(?:ed with status| ?code:) (\d+)", re.IGNORECASE)
_EXCEPTION = re.compile(r"^(?:Exception in thread \"[^\"]*\" |Caused by: )?((?:[\w$]+\.)*\w*(?:Error|Exception)\b.*)")


class Verdict:
    """Watches the lines of a spark-submit go by.

    `file`: where a driver that runs here leaves the failure (kafka_archiver.errors.Failure).
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._cause: str | None = None
        self._exception: str | None = None
        self._codes: set[int] = set()

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        """The same lines."""
        for line in lines:
            text = line.strip()
            if text.startswith(MARK):
                self._cause = text.removeprefix(MARK)
            elif found := _EXCEPTION.match(text):
                self._exception = found[1]
            if code := _LOGGED_CODE.search(text):
                self._codes.add(int(code[1]))
            yield line

    def error(self, code: int | None) -> ArchiverError:
        """What to raise.

        :param code: spark-submit's exit code, negative for the signal that killed it.
        """
        # None is there when the driver is on another machine, or was killed; half a one when the disk was full.
        with suppress(OSError, ValueError):
            return Failure.from_json(self.file.read_text(encoding="ascii")).error()
        cause = self._cause or self._exception or "it did not say why; see the lines above"
        codes = {code, *self._codes}
        if PERMANENT_EXIT in codes:
            return PermanentError(cause)
        if TRANSIENT_EXIT in codes:
            return TransientError(cause)
        if OUT_OF_MEMORY_EXIT in codes and (full := out_of_memory(cause)):
            return full
        if code is not None and (code < 0 or code > 128):
            signal = -code if code < 0 else code - 128
            return TransientError(f"spark-submit was killed by signal {signal} (out of memory, or by hand): {cause}")
        return TransientError(f"the Spark job ended with exit code {code}: {cause}")

"""The main program of every job: reads its document and the endpoints, runs it, and reports what failed."""

import gc
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from kafka_archiver.driver.end_with_parent import watch
from kafka_archiver.jobs.endpoints import ENDPOINTS, VERDICT, Endpoints
from kafka_archiver.jobs.registry import Run, read_document, run_of
from kafka_archiver.messages.errors import ArchiverError, ConfigError, Failure
from kafka_archiver.spark.failures import exit_code, one_line, understand
from kafka_archiver.values.garbage_collector import seldom_collecting


def run_program(arguments: Sequence[str]) -> NoReturn:
    """Do the job of the document, and exit with its code."""
    with seldom_collecting():
        code = main(arguments)
    # Without this, Python searches all objects for cycles before it exits: a tenth of a CPU second.
    gc.freeze()
    sys.exit(code)


def main(arguments: Sequence[str], run: Run | None = None) -> int:
    """Do the job of the document. Returns the exit code. `run`: in the place of the job's own."""
    watch()
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        document, endpoints = read_document(arguments), _endpoints()
        (run or run_of(document))(document, endpoints)
    except Exception as error:  # noqa: BLE001 - the last line of the log must name any error
        return _failed(understand(error))
    return 0


def _endpoints() -> Endpoints:
    text = os.environ.get(ENDPOINTS)
    if not text:
        raise ConfigError(
            f"the environment variable {ENDPOINTS} is not set: expected JSON with `kafka` (client properties) and "
            "`store` (options), or @ and the name of a file with this JSON; the DAG's task sets the variable"
        )
    try:
        # On YARN, spark-submit ships a file: a variable would be in the containers' logs.
        return Endpoints.from_json(Path(text[1:]).read_bytes() if text.startswith("@") else text)
    except OSError as error:
        raise ConfigError(f"{ENDPOINTS} names a file that cannot be read: {error}") from None


def _failed(cause: Exception) -> int:
    if not isinstance(cause, ArchiverError):
        traceback.print_exc()
    elif place := os.environ.get(VERDICT):
        # If this fails, the task uses the exit code and the last line, as it does for a driver on another machine.
        with suppress(OSError):
            Path(place).write_text(Failure.of(cause).to_json(), encoding="ascii")
    sys.stdout.write(one_line(cause) + "\n")
    sys.stdout.flush()
    return exit_code(cause)

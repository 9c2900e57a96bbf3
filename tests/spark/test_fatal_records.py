"""Records that end a process: it really ends, in Spark's own Python workers, and the other records are archived."""

from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from tests.support.archiver import Archiver, Services, hour
from tests.support.mappers import write_module
from tests.support.topics import DAY, Record

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.usefixtures("spark")]

MAPPER = """
import ctypes, os, time
def fatal(record):
    value = record.value.decode()
    if value == "segfault":
        ctypes.string_at(0)
    if value == "abort":
        os.abort()
    if value == "exit":
        os._exit(3)
    if value == "sleep":
        time.sleep(3600)
    if value == "memory":
        kept = [bytearray(64 << 20) for _ in range(100)]
    return record
def later(record):
    if os.path.exists(MARKER):
        return fatal(record)
    return record
"""
HOW = {
    "segfault": "it ended the process by SIGSEGV",
    "abort": "it ended the process by SIGABRT",
    "exit": "it ended the process with exit code 3",
    "sleep": "it took more than 5 s",
    "memory": "it needed more than 1,073,741,824 bytes of memory",
}
LIMITS = {"record_seconds": 5, "record_memory_bytes": 1 << 30}
# To take memory takes time.
PATIENT = {**LIMITS, "record_seconds": 60}


def archive(services: Services, tmp_path: Path, values: list[str], function: str = "fatal", **more: Any) -> Archiver:
    name = write_module(tmp_path, MAPPER.replace("MARKER", repr(str(tmp_path / "marker"))))
    # Spark's workers do not look where this process does.
    SparkContext.getOrCreate().addPyFile(str(tmp_path / f"{name}.py"))
    records = [Record(0, DAY + n, value.encode()) for n, value in enumerate(values)]
    options: dict[str, Any] = {"policies": {"bad_record": "dead_letter"}, "settings": {"format": "text"}, **more}
    archive_options = {
        "spark": PATIENT if "memory" in values else LIMITS,
        "transform": {"mapper": f"{name}:{function}"},
    }
    return services.archive(records, more=archive_options, **options)


def letters(archiver: Archiver) -> dict[int, str]:
    letter_lines = (line for lines in archiver.lines().values() for line in lines if isinstance(line, dict))
    return {line["offset"]: line["error"] for line in letter_lines}


def reason(value: str) -> str:
    return f"no process survives this record: {HOW[value]}"


@pytest.mark.parametrize("reader", ["native", "spark"])
def test_records_that_end_the_process_are_dead_letters_and_the_others_are_archived(
    services: Services, tmp_path: Path, reader: str
) -> None:
    """The first record of the log, two in one chunk, and the last one of the log."""
    values = [f"{n}" for n in range(60)]
    fatal = {0: "segfault", 25: "abort", 39: "exit", 59: "abort"}
    for offset, value in fatal.items():
        values[offset] = value
    settings = {"format": "jsonl", "chunk_records": 20}
    archiver = archive(services, tmp_path, values, settings=settings, source={"reader": reader})
    archiver.run(hour(1))
    assert archiver.account(hour(1)) == {"archived": 56, "dead_lettered": 4}
    assert letters(archiver) == {offset: reason(value) for offset, value in fatal.items()}
    before, manifest = archiver.etags(), archiver.manifest(hour(1))
    assert [offset for account in manifest.chunks for offset, _ in account.set_aside] == sorted(fatal)

    # A replay meets no such record, and its bytes are the same.
    for key in before:
        archiver.context.store.delete(key)
    archiver.job().run(hour(1).id)
    assert archiver.etags() == before
    assert archiver.manifest(hour(1)) == manifest


@pytest.mark.parametrize("value", ["sleep", "memory"])
def test_a_record_that_takes_too_long_or_too_much_memory_is_a_dead_letter(
    services: Services, tmp_path: Path, value: str
) -> None:
    archiver = archive(services, tmp_path, ["1", "2", value, "3"], settings={"format": "jsonl"})
    archiver.run(hour(1))
    assert letters(archiver) == {2: reason(value)}
    assert archiver.account(hour(1)) == {"archived": 3, "dead_lettered": 1}

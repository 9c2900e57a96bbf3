"""The audit's readers, and those that distributions add."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from typing import BinaryIO

import pytest

from kafka_archiver.audit import readers
from kafka_archiver.audit.content import is_readable, read_through
from kafka_archiver.audit.readers.base import FormatReader
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.writer.finish_uploads import complete
from tests.support.chunks import Row, chunk_of, cut, new_store, write
from tests.support.values import plan

pytestmark = pytest.mark.unit


def count_lines(file: BinaryIO, settings: Settings) -> int:
    """Somebody's reader of a format whose objects are lines."""
    return file.read().count(b"\n")


LINES = FormatReader(values=count_lines)
NO_READER = 7


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """Entry points of the group; append to it."""
    points: list[EntryPoint] = []
    monkeypatch.setattr(readers, "entry_points", lambda **match: EntryPoints(points).select(**match))
    readers._added.cache_clear()
    yield points
    readers._added.cache_clear()


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{value}", "kafka_archiver.audit_readers")


def test_a_distribution_adds_a_reader_of_its_format(installed: list[EntryPoint]) -> None:
    assert not is_readable(Settings(format="lines"))
    readers._added.cache_clear()
    installed.append(point("lines", "LINES"))
    assert readers.reader_of("lines") is LINES
    assert is_readable(Settings(format="lines"))
    assert not is_readable(Settings(format="lines", content="record"))
    assert readers.names() == ("avro", "block_gzip", "bytes", "csv", "jsonl", "lines", "mak", "parquet", "text")


def test_an_added_reader_finds_what_is_wrong_with_an_object(installed: list[EntryPoint]) -> None:
    installed.append(point("lines", "LINES"))
    store = new_store()
    rows = [Row(i, 0, value=b"v") for i in range(5)]
    [entry] = complete([write(chunk_of(0, 5), cut(rows, 5), store, format="jsonl", codec="none")], store)
    data = store.get(entry.key) or b""
    of = plan(settings=Settings(format="lines", codec="none"))

    def fetch(start: int, length: int) -> bytes:
        return data[start : start + length]

    assert list(read_through(entry, of, fetch)) == []
    fewer = entry.model_copy(update={"rows": 4})
    assert list(read_through(fewer, of, fetch)) == ["it has 5 rows"]


def test_a_distribution_cannot_replace_a_reader(installed: list[EntryPoint]) -> None:
    installed.append(point("jsonl", "LINES"))
    assert readers.reader_of("jsonl") is readers.READERS["jsonl"]


@pytest.mark.parametrize(
    ("points", "fault"),
    [
        ([], "has no reader of 'lines', and no distribution adds one"),
        (["LINES", "LINES"], "several distributions add one: "),
        (["MISSING"], "cannot be loaded: attribute error: "),
        (["NO_READER"], "is none: found int, expected a FormatReader"),
    ],
)
def test_a_reader_that_cannot_be_had_says_why_and_stops_no_audit(
    points: list[str], fault: str, installed: list[EntryPoint]
) -> None:
    installed += [point("lines", value) for value in points]
    assert fault in readers.reader_of("lines").fault
    assert not is_readable(Settings(format="lines"))

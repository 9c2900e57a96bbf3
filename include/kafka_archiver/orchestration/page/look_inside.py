"""Records on the page: from an offset on, or the first dead letters of an object. Each look is in Airflow's audit log.

Who may trigger the archive's DAG may look. `ARCHIVER_PAGE_RECORDS` says into which archives: `plain` (the default):
those that are not encrypted before they are sent; `all`; `none`.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Depends, HTTPException, Request, Response

from kafka_archiver.config import Archive
from kafka_archiver.messages.advice import dag_id, print_object
from kafka_archiver.messages.errors import ArchiverError, ConfigError, TransientError
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.orchestration.metadata.triggering import note
from kafka_archiver.orchestration.page.access import (
    RECORDS_SETTING,
    ShownArchive,
    Visitor,
    may_act,
    shows_records,
)
from kafka_archiver.orchestration.page.archives import open_for_page
from kafka_archiver.orchestration.page.details import PageDetails
from kafka_archiver.orchestration.page.render import render
from kafka_archiver.orchestration.page.shown_record import ShownRecord
from kafka_archiver.orchestration.page.views import require_hour
from kafka_archiver.reader.lookup import DeadLetterError, Lookup, json_lines, record_place
from kafka_archiver.records.formats.dead_letter import first_lines
from kafka_archiver.values.intervals import hour_start, to_hour
from kafka_archiver.values.ranges import TopicPartition

# Records of one look.
RECORDS = 20
# Bytes of an object of dead letters that are read, and that they become.
_READ, _TEXT = 1 << 18, 1 << 22


def _archive_to_look_into(archive: ShownArchive, who: Visitor) -> Archive:
    name = archive.archive
    if not shows_records(archive):
        raise HTTPException(403, f"Records of {name} are not shown here; {RECORDS_SETTING} decides it")
    if not may_act(who, dag_id(name)):
        raise HTTPException(403, f"Who may trigger {dag_id(name)} may look at its records; you may not")
    return archive


OpenArchive: TypeAlias = Annotated[Archive, Depends(_archive_to_look_into)]
router = APIRouter()


@router.get("/archives/{name}/records")
def records(request: Request, who: Visitor, archive: OpenArchive, name: str, at: str, count: int = 5) -> Response:
    """Show records from an offset on."""
    count = min(max(count, 1), RECORDS)
    shown, error, earlier, later, beside = list[ShownRecord](), "", "", "", ""
    title, command = f"Records from {at}", f"airflow archive get {name} {at} --count {count}"
    try:
        place, offset = record_place(at.strip())
        note("archiver_look", dag_id(name), who.get_name(), record=at, count=count)
        shown = list(_records(archive, place, offset, count))
        earlier = _address(place, max(offset - count, 0)) if offset else ""
        last = shown[-1].offset if len(shown) >= count else None
        later = "" if last is None else _address(place, last + 1)
    except DeadLetterError as failure:
        title, command = f"Dead letter {at}", _print_command(archive, failure.entry.key)
        shown = _letters_at(archive, failure.entry, offset)
        error = "" if shown else str(failure)
        later, beside = _address(place, offset + 1), _letters_address(failure.entry)
    except ArchiverError as failure:
        error = str(failure)
        if not isinstance(failure, TransientError):
            # The same command would have the same answer.
            command = next((action.command for action in failure.actions), "")
    return render(
        request, "records.html", 400 if error else 200,
        name=name, title=title, command=command, records=shown, error=error, hour=None,
        at=at, count=count, earlier=earlier, later=later, beside=beside, store=archive.store.url.rstrip("/"),
    )  # fmt: skip


@router.get("/archives/{name}/hours/{hour}/dead-letters")
def dead_letters(
    request: Request, who: Visitor, archive: OpenArchive, details: PageDetails, name: str, hour: str, key: str
) -> Response:
    """Show the first dead letters of one object of an hour."""
    start = require_hour(hour)
    answer = details.hour(name, to_hour(start))
    entries = answer.value.letters if answer.value else ()
    entry = next((entry for entry in entries if entry.key == key), None)
    if entry is None:
        raise HTTPException(404, f"Hour {hour} of {name} has no such object of dead letters")
    note("archiver_look", dag_id(name), who.get_name(), key=key)
    shown, error = list[ShownRecord](), ""
    try:
        shown = list(islice(_letters(archive, entry), RECORDS))
    except ArchiverError as failure:
        error = str(failure)
    title, command = f"Dead letters of {start:%Y-%m-%d %H:%M}", _print_command(archive, key)
    return render(
        request, "records.html", name=name, title=title, command=command, records=shown, error=error, hour=start,
        at="", count=0, earlier="", later="", beside="", store=archive.store.url.rstrip("/"),
    )  # fmt: skip


def _address(place: TopicPartition, offset: int) -> str:
    return f"{place.topic}+{place.partition}@{offset}"


def _records(archive: Archive, place: TopicPartition, offset: int, count: int) -> Iterator[ShownRecord]:
    for batch, entries in Lookup(open_for_page(archive).ledger, place).located(offset, count):
        for line, entry in zip(json_lines(batch, place).splitlines(), entries, strict=True):
            yield _stored(line, entry)


def _stored(line: bytes, entry: ObjectEntry | None) -> ShownRecord:
    record = ShownRecord.of(line)
    if entry is None:
        return record
    hour = next(iter(entry.hours)) if len(entry.hours) == 1 else None
    return record._replace(key=entry.key, hour=None if hour is None else hour_start(hour))


def _letters_address(entry: ObjectEntry) -> str:
    """Return where the letters of an object are shown, below the archive's page; empty: in no hour."""
    hour = next((hour for hour in entry.hours if hour is not None), None)
    return "" if hour is None else f"hours/{hour_start(hour):%Y-%m-%dT%H}/dead-letters?key={quote(entry.key, safe='')}"


def _print_command(archive: Archive, key: str) -> str:
    return print_object(f"{archive.store.url.rstrip('/')}/{key}").command


def _letters(archive: Archive, entry: ObjectEntry) -> Iterator[ShownRecord]:
    """Yield the letters in the beginning of an object."""
    head = open_for_page(archive).store.read(entry.key, 0, _READ)
    if head is None:
        raise ConfigError(f"{entry.key} is missing")
    yield from (_stored(line, entry) for line in first_lines(head, _TEXT))


def _letters_at(archive: Archive, entry: ObjectEntry, offset: int) -> list[ShownRecord]:
    """Return the letters at an offset; none if they are not in the beginning of the object."""
    try:
        letters = _letters(archive, entry)
        return list(islice((letter for letter in letters if letter.offset == offset), RECORDS))
    except ArchiverError:
        return []

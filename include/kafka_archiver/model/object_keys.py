"""Names of objects and documents. Pure; no two things share a key.

Data:   <topic>/<path of the layout>/<name>.<ext>; the name is
        <topic>+<partition>+<chunk start, 20 digits>[+g<generation>][+r<revision>][+k<schema id>][+s<schema id>]
        _dead_letter/<topic>/… for the records that the archive's format cannot hold
Ledger: _ledger/_topics/<topic>.json, which archive has a topic here
        _ledger/<archive>/schemas/<fingerprint>.json, the schemas that plans name
        _ledger/<archive>/{topics,groups}/<fingerprint>.json, the snapshots that plans name
        _ledger/<archive>/keys/<id>.json, the wrapped data keys of encrypted plans
        _ledger/<archive>/line/<number, 12 digits>.json, the plans in their order
        _ledger/<archive>/runs/<run>/{plan,set_aside,intent,manifest,commit,settled}.json
        _ledger/<archive>/hours/2026-11-21/05[+<page>].json
        _ledger/<archive>/adopted/…, the objects that another tool wrote
        _ledger/<archive>/restores/<restore>/{plan,map,report,groups,schemas}.json, pages/<digest>.json
A record that comes late is of another chunk: it gets an object of its own in the folder of its hour.
A run is named after the start of its interval. A rebuild adds its revision: 20261121T050000Z+r1.
"""

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import NamedTuple
from urllib.parse import quote, unquote

from kafka_archiver.values.intervals import hour_start, parse_run_id, to_hour

LEDGER = "_ledger"
DEAD_LETTER = "_dead_letter"
# The end of the name of an object that is encrypted before it is sent.
SEALED = ".enc"
_OBJECT = re.compile(
    r"(?P<topic>[^+]+)\+(?P<partition>\d+)\+(?P<start>\d{20})(\+g(?P<generation>\d+))?(\+r(?P<revision>\d+))?"
    r"(\+k\d+)?(\+s\d+)?\..+"
)
_REVISION = re.compile(r"\+r([1-9]\d*)(?:\+k\d+)?(?:\+s\d+)?(?:\.[^/]*)?$")
_SCHEMAS = re.compile(r"((?:\+k\d+)?(?:\+s\d+)?)(?:\.[^/]*)?$")
_RUN = re.compile(r"(?P<start>[^+]+)(\+r(?P<revision>[1-9]\d*))?")
_ADOPTED = re.compile(r"adoption\.json|(?:objects/[^/]+\+\d+|work/listing|work/reading)/\d{6,}\.json|work/begun\.json")
# The names of a restore's documents.
_OF_RESTORE = re.compile(r"plan|map|report|groups|schemas|pages/[0-9a-f]{64}")
# Names of the archiver's own folders; no topic's folder has them.
RESERVED = frozenset({LEDGER, DEAD_LETTER})
# For records without a usable time: Hive, Spark and DuckDB read it as a null partition value.
NO_TIME = "__HIVE_DEFAULT_PARTITION__"


class ObjectName(NamedTuple):
    """The parts of an object's name: its chunk, and the revision of the plan."""

    topic: str
    partition: int
    start: int
    generation: int = 0
    revision: int = 0


def encode(name: str) -> str:
    """A name as one path segment: percent-encoded, never sanitised, so different names stay different.

    Letters, digits, `.`, `_`, `-` and `~` stay. In a reserved name, the first character is encoded too.
    """
    if name in RESERVED or name in (".", ".."):
        return f"%{ord(name[0]):02X}{name[1:]}"
    return quote(name, safe="")


def decode(segment: str) -> str:
    """The inverse of `encode`."""
    return unquote(segment)


def object_key(place: ObjectName, path: str, extension: str, dead_letter: bool = False, schemas: str = "") -> str:
    """The key of the object with those records of one chunk that are filed under `path`.

    :param extension: with its dot, for example `.jsonl.gz`.
    :param dead_letter: for records that the archive's format cannot hold.
    :param schemas: of records filed by schema, `+k` and the id of the keys' schema, `+s` and that of the values'.
    """
    name = encode(place.topic)
    suffix = f"+g{place.generation}" * bool(place.generation) + f"+r{place.revision}" * bool(place.revision)
    file = f"{name}+{place.partition}+{place.start:020d}{suffix}{schemas}{extension}"
    return f"{topic_prefix(place.topic, dead_letter)}{path}/{file}"


def sidecar_key(key: str, extension: str) -> str:
    """The key of an object's sidecar. :param extension: with its dot, for example `.index.json`."""
    own = key.removesuffix(SEALED)
    return own + extension + key[len(own) :]


def topic_prefix(topic: str, dead_letter: bool = False) -> str:
    """The prefix of all objects of a topic, with the closing slash."""
    return f"{DEAD_LETTER}/" * dead_letter + f"{encode(topic)}/"


def is_reserved(key: str) -> bool:
    """Return True if a key is in one of the archiver's own folders."""
    return key.partition("/")[0] in RESERVED


def is_dead_letter(key: str) -> bool:
    """Return True if an object's key is that of dead-lettered records."""
    return key.startswith(f"{DEAD_LETTER}/")


def run_name(interval: str, revision: int) -> str:
    """The ledger's name of a revision of an interval's run; 0 is the run itself."""
    return f"{interval}+r{revision}" if revision else interval


def interval_of(run: str | None) -> str:
    """Return the id of a run's interval, the same for all of its revisions; empty without a run."""
    return (run or "").partition("+")[0]


def split_run(run: str) -> tuple[datetime, int]:
    """The start of a run's interval, and the run's revision.

    :raises ValueError: it is not the name of a run.
    """
    match = _RUN.fullmatch(run)
    if match is None:
        raise ValueError(f"not the name of a run: {run!r}")
    return parse_run_id(match["start"]), int(match["revision"] or 0)


def ledger_prefix(archive: str) -> str:
    """The prefix of one archive's ledger, with the closing slash."""
    return f"{LEDGER}/{encode(archive)}/"


def probe_prefix(archive: str) -> str:
    """The prefix of the objects with which `airflow archive doctor` tries the store, with the closing slash."""
    return f"{ledger_prefix(archive)}doctor/"


def run_prefix(archive: str) -> str:
    """The prefix of the documents of all runs, with the closing slash."""
    return f"{ledger_prefix(archive)}runs/"


def run_document(archive: str, run: str, name: str) -> str:
    """The key of a run's document; `name` is plan, set_aside, intent, manifest, commit or settled."""
    return f"{run_prefix(archive)}{run}/{name}.json"


def split_run_document(archive: str, key: str) -> tuple[str, str] | None:
    """The inverse of `run_document`: run and name; None for any other key."""
    prefix = run_prefix(archive)
    run, _, document = key.removeprefix(prefix).partition("/")
    if not key.startswith(prefix) or "/" in document or not document.endswith(".json"):
        return None
    try:
        split_run(run)
    except ValueError:
        return None
    return run, document.removesuffix(".json")


def line_document(archive: str, number: int) -> str:
    """The key of the plan at this place of the archive's line; 12 digits."""
    return f"{ledger_prefix(archive)}line/{number:012d}.json"


def split_line_document(archive: str, key: str) -> int | None:
    """The inverse of `line_document`; None for any other key."""
    digits = key.removeprefix(f"{ledger_prefix(archive)}line/").removesuffix(".json")
    return int(digits) if digits.isdecimal() and key == line_document(archive, int(digits)) else None


def hour_document(archive: str, hour: int | None, page: int | None = None) -> str:
    """The key of an hour's proof: hours/2026-11-21/05.json below the archive's ledger.

    :param page: the number of one of its pages, from 0: hours/2026-11-21/05+000000.json.
    """
    suffix = ".json" if page is None else f"+{page:06d}.json"
    if hour is None:
        return f"{ledger_prefix(archive)}hours/{NO_TIME}{suffix}"
    start = hour_start(hour)
    return f"{ledger_prefix(archive)}hours/{start.year:04d}-{start:%m-%d}/{start:%H}{suffix}"


def split_hour_document(archive: str, key: str) -> tuple[int | None, int | None] | None:
    """The inverse of `hour_document`: hour and page, either may be None; None for any other key."""
    name, _, digits = key.removesuffix(".json").partition("+")
    page = int(digits) if digits.isdecimal() else None
    day, _, start = name.removeprefix(f"{ledger_prefix(archive)}hours/").partition("/")
    try:
        moment = None if day == NO_TIME else datetime.strptime(f"{day} {start} +0000", "%Y-%m-%d %H %z")
    except ValueError:
        return None
    hour = None if moment is None else to_hour(moment)
    return (hour, page) if key == hour_document(archive, hour, page) else None


def schema_document(archive: str, fingerprint: str) -> str:
    """The key of a schema; the fingerprint has 32 hexadecimal digits."""
    return f"{ledger_prefix(archive)}schemas/{fingerprint}.json"


def split_schema_document(archive: str, key: str) -> str | None:
    """The inverse of `schema_document`; None for any other key."""
    return _hex_name(archive, key, schema_document)


def snapshot_document(archive: str, fingerprint: str, name: str) -> str:
    """The key of a snapshot; `name` is topics or groups, the fingerprint has 32 hexadecimal digits."""
    return f"{ledger_prefix(archive)}{name}/{fingerprint}.json"


def split_snapshot_document(archive: str, key: str) -> tuple[str, str] | None:
    """The inverse of `snapshot_document`: name and fingerprint; None for any other key."""
    for name in ("topics", "groups"):
        if fingerprint := _hex_name(archive, key, partial(snapshot_document, name=name)):
            return name, fingerprint
    return None


def key_document(archive: str, key_id: str) -> str:
    """The key of a wrapped data key; the id has 32 hexadecimal digits."""
    return f"{ledger_prefix(archive)}keys/{key_id}.json"


def split_key_document(archive: str, key: str) -> str | None:
    """The inverse of `key_document`; None for any other key."""
    return _hex_name(archive, key, key_document)


def _hex_name(archive: str, key: str, document: Callable[[str, str], str]) -> str | None:
    name = key.rpartition("/")[2].removesuffix(".json")
    return name if re.fullmatch(r"[0-9a-f]{32}", name) and key == document(archive, name) else None


def restores_prefix(archive: str) -> str:
    """Return the prefix of the documents of all restores, with the closing slash."""
    return f"{ledger_prefix(archive)}restores/"


def restore_document(archive: str, restore: str, name: str) -> str:
    """Return the key of a restore's document; `name` is plan, map, report, groups, schemas, or pages/<digest>."""
    return f"{restores_prefix(archive)}{encode(restore)}/{name}.json"


def split_restore_document(archive: str, key: str) -> tuple[str, str] | None:
    """Return the restore and the name in the key of a restore's document; None for any other key."""
    segment, _, name = key.removeprefix(restores_prefix(archive)).removesuffix(".json").partition("/")
    restore = decode(segment)
    return (restore, name) if name and key == restore_document(archive, restore, name) else None


def is_restore_document(archive: str, key: str) -> bool:
    """Return True if a key is that of a document of a restore."""
    place = split_restore_document(archive, key)
    return place is not None and _OF_RESTORE.fullmatch(place[1]) is not None


def acknowledged_prefix(archive: str) -> str:
    """The prefix of all decisions about findings, with the closing slash."""
    return f"{ledger_prefix(archive)}acknowledged/"


def acknowledged_document(archive: str, finding: str, number: int) -> str:
    """The key of a decision about a finding; 6 digits, from 1."""
    return f"{acknowledged_prefix(archive)}{encode(finding)}/{number:06d}.json"


def split_acknowledged_document(archive: str, key: str) -> tuple[str, int] | None:
    """The inverse of `acknowledged_document`; None for any other key."""
    name, _, digits = key.removeprefix(acknowledged_prefix(archive)).removesuffix(".json").partition("/")
    if not digits.isdecimal() or key != acknowledged_document(archive, decode(name), int(digits)):
        return None
    return decode(name), int(digits)


def adopted_prefix(archive: str) -> str:
    """The prefix of all documents about adopted objects, with the closing slash."""
    return f"{ledger_prefix(archive)}adopted/"


def adoption_document(archive: str) -> str:
    """The key of the head of what was adopted."""
    return f"{adopted_prefix(archive)}adoption.json"


def adopted_page_document(archive: str, topic: str, partition: int, number: int) -> str:
    """The key of a page of adopted objects."""
    return f"{adopted_prefix(archive)}objects/{encode(topic)}+{partition}/{number:06d}.json"


def adoption_begun_document(archive: str) -> str:
    """The key of the document that ends the listing of a folder that is being adopted."""
    return f"{adopted_prefix(archive)}work/begun.json"


def adopted_work_document(archive: str, name: str, number: int) -> str:
    """The key of a part of an adoption that is not finished; `name` is listing or reading."""
    return f"{adopted_prefix(archive)}work/{name}/{number:06d}.json"


def is_adopted_document(archive: str, key: str) -> bool:
    """Return True if a key may be that of a document about adopted objects, of a finished adoption or another one."""
    prefix = adopted_prefix(archive)
    return key.startswith(prefix) and _ADOPTED.fullmatch(key.removeprefix(prefix)) is not None


def claim_document(topic: str) -> str:
    """The key of the claim that says which archive has a topic; no archive's name begins with `_`."""
    return f"{LEDGER}/_topics/{encode(topic)}.json"


def progress_document(archive: str) -> str:
    """The key of the archive's progress, the summary of all settled runs."""
    return f"{ledger_prefix(archive)}progress.json"


def audit_document(archive: str) -> str:
    """The key of the report of the last audit."""
    return f"{ledger_prefix(archive)}audit.json"


def revision_in(key: str) -> int:
    """The revision in an object's key, whatever the layout."""
    match = _REVISION.search(key)
    return int(match[1]) if match else 0


def schemas_in(key: str) -> str:
    """Return what an object's key has for the schemas that are not the main ones, like `+s7`, whatever the layout."""
    match = _SCHEMAS.search(key)
    return match[1] if match else ""


def split_object_key(key: str) -> ObjectName | None:
    """The inverse of `object_key`, dead-lettered or not; None for a key of another form."""
    match = _OBJECT.fullmatch(key.rsplit("/", 1)[-1])
    if match is None:
        return None
    numbers = (int(match[name] or 0) for name in ("partition", "start", "generation", "revision"))
    return ObjectName(decode(match["topic"]), *numbers)

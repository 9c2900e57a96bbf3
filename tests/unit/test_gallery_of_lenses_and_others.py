"""Published configurations of Lenses, Zooz, kafkatos3 and DeviantArt: the keys of both sides, and what is named.

Each file below `tests/unit/gallery` has a configuration with the values that its `source` has, records, and for each
the key of the tool's file (`theirs`) and of ours (`ours`), worked out by hand from the tool's source or documentation
for a file with that one record. `open` has a part of each note that a person has to decide, and no other such note may
be there; `named` of notes that say why keys or bytes differ.
"""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_archiver.config import parse_archive
from kafka_archiver.imports.base import OPEN
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.layouts.registry import form_of
from kafka_archiver.model.object_keys import ObjectName
from kafka_archiver.model.settings import Settings
from kafka_archiver.orchestration.cli.imported_yaml import ImportResult, archives_of
from kafka_archiver.planning.settings import settings_of
from kafka_archiver.records.formats.registry import extension_of
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.pipeline.filing.paths import Paths
from kafka_archiver.records.writer.finish_uploads import complete
from scripts.stack.paths import ROOT
from tests.support.chunks import Row, batch, chunk_of, new_store, write

pytestmark = pytest.mark.unit

FOLDER = ROOT / "tests/unit/gallery"
TOOLS = ("lenses", "zooz", "kafkatos3", "deviantart")
FILES = sorted(file for tool in TOOLS for file in (FOLDER / tool).glob("*.yaml"))
CASES = {f"{file.parent.name}/{file.stem}": yaml.safe_load(file.read_text()) for file in FILES}
MADE = [name for name, case in CASES.items() if "refused" not in case]
# A layout takes the same text from a decoded column as from JSON; whole texts are the bytes.
PLAIN = {"avro": "json", "protobuf": "json", "json_schema": "json", "string": "bytes"}


def imported(case: dict[str, Any]) -> ImportResult:
    return archives_of(case["config"], "file")


def settings_by_name(result: ImportResult) -> dict[str, tuple[str, Settings]]:
    """Return the address and the settings of each archive."""
    settings = {}
    for imported_archive in result.archives:
        archive = parse_archive(imported_archive.yaml, "x", {})
        settings[imported_archive.archive] = (archive.store.url, settings_of(archive))
    return settings


def row_of(record: dict[str, Any]) -> Row:
    time = datetime.fromisoformat(record.get("time", "2026-11-21T05:06:07+00:00"))
    headers = tuple((name, text.encode()) for name, text in record.get("headers", {}).items())
    key, value = record.get("key"), record.get("value", "{}")
    return Row(
        record.get("offset", 42),
        int(time.timestamp() * 1000),
        key=None if key is None else key.encode(),
        value=None if value is None else value.encode(),
        headers=headers,
    )


def key_of(settings: Settings, record: dict[str, Any]) -> str:
    """Return the key of the object with this record alone."""
    extension = extension_of(settings)
    plain = {"value_decode": PLAIN.get(settings.value_decode, settings.value_decode)}
    plain |= {"key_decode": PLAIN.get(settings.key_decode, settings.key_decode)}
    settings = settings.model_copy(update=plain)
    row = row_of(record)
    chunk = chunk_of(row.offset, row.offset + 1, record["topic"])
    chunk = chunk.model_copy(update={"partition": record.get("partition", 3)})
    form, marks = form_of(settings), Marks()
    paths = Paths(form, chunk, settings)
    [part] = paths.parts(batch([row]), marks).tolist()
    return form.key(ObjectName(chunk.topic, chunk.partition, chunk.start, 0), paths.path(part), extension)


@pytest.mark.parametrize("name", [name for name in MADE if CASES[name]["records"]])
def test_each_record_has_the_key_that_was_worked_out(name: str) -> None:
    case = CASES[name]
    archives = settings_by_name(imported(case))
    for record in case["records"]:
        url, settings = archives[record["archive"]] if "archive" in record else next(iter(archives.values()))
        assert f"{url}/{key_of(settings, record)}" == record["ours"]
        if record["ours"] != record["theirs"]:
            assert case["named"], "the difference is named in the output"


@pytest.mark.parametrize("name", MADE)
def test_what_is_not_the_same_is_a_line_in_the_output(name: str) -> None:
    case, result = CASES[name], imported(CASES[name])
    decided = [f"{note.key}: {note.text}" for note in result.notes if note.kind in OPEN]
    notes = [f"{note.key}: {note.text}" for note in result.notes if note.kind not in OPEN]
    expected = case.get("open", [])
    assert [text for text in decided if not any(part in text for part in expected)] == []
    assert [part for part in expected if not any(part in text for text in decided)] == []
    assert [part for part in case.get("named", []) if not any(part in text for text in [*decided, *notes])] == []
    problems = [problem for archive in result.archives for problem in archive.problems]
    assert [problem for problem in problems if not any(part in problem for part in case.get("problems", []))] == []
    assert len(result.faults) == len(case.get("faults", []))
    assert all(part in fault for part, fault in zip(case.get("faults", []), result.faults, strict=True))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "refused" in case])
def test_what_is_no_sink_to_s3_is_refused_with_a_reason(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        imported(CASES[name])
    assert CASES[name]["refused"] in str(caught.value)


@pytest.mark.parametrize("name", [name for name in MADE if any("bytes" in record for record in CASES[name]["records"])])
def test_the_object_of_a_record_has_the_bytes_of_the_tool_s_file(name: str) -> None:
    case = CASES[name]
    archives = settings_by_name(imported(case))
    for record in [record for record in case["records"] if "bytes" in record]:
        url, settings = archives[record["archive"]] if "archive" in record else next(iter(archives.values()))
        row, store = row_of(record), new_store()
        chunk = chunk_of(row.offset, row.offset + 1, record["topic"])
        chunk = chunk.model_copy(update={"partition": record.get("partition", 3)})
        chunk_result = write(chunk, [batch([row])], store, **{**dict(settings), "codec": "none"})
        [entry] = complete([chunk_result], store)
        assert f"{url}/{entry.key}" == record["ours"].removesuffix(".gz")
        assert store.get(entry.key) == record["bytes"].encode()


def test_every_tool_is_in_the_gallery_and_every_file_names_its_source() -> None:
    assert {name.split("/")[0] for name in CASES} == set(TOOLS)
    assert len(CASES) >= 50
    table = Path(FOLDER / "README.md").read_text()
    for name, case in CASES.items():
        assert f"`{name}`" in table
        assert case["source"] in table

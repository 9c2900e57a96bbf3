"""Published configurations of connectors: each gives the connector's own keys and lines, or says what it does not."""

import gzip
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from kafka_archiver.config import parse_archive
from kafka_archiver.config.archive import Archive
from kafka_archiver.imports.base import OPEN
from kafka_archiver.model.layouts.registry import form_of
from kafka_archiver.model.object_keys import ObjectName
from kafka_archiver.model.settings import Settings
from kafka_archiver.orchestration.cli.imported_yaml import ImportResult, archives_of
from kafka_archiver.planning.settings import settings_of
from kafka_archiver.planning.time_settings import with_wall_clock
from kafka_archiver.records.formats.base import SCHEMAS, Target
from kafka_archiver.records.formats.registry import get_format
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.pipeline.filing.event_time import time_stage
from kafka_archiver.records.pipeline.filing.paths import Paths
from scripts.stack.paths import ROOT
from tests.support.chunks import Row, batch, chunk_of

GALLERY = yaml.safe_load((ROOT / "tests/unit/gallery/connect.yaml").read_text())
CASES = GALLERY["cases"]
T = datetime(2026, 11, 21, 5, 7, 8, tzinfo=UTC)
every = pytest.mark.parametrize("case", CASES, ids=[case["of"] for case in CASES])
# Behind the name of an object: theirs has the same as ours in front of it.
EXTENSION = re.compile(r"(\.(json|avro|bin|gz|snappy|zstd|parquet|\?))+$")


def imported(case: dict[str, Any]) -> ImportResult:
    text = case.get("text") or json.dumps({"name": case["config"].get("name"), "config": case["config"]})
    return archives_of(text, case.get("file", "connector"), None, case.get("group"), case.get("worker"))


def planned(archive: Archive) -> Settings:
    """The settings of a plan that is made at T, with values that the test can write: JSON for whatever was decoded."""
    settings = with_wall_clock(settings_of(archive), T)
    return settings.model_copy(update={"value_decode": "json", "transform": None})


def key_of(case: dict[str, Any], archive: Archive) -> str:
    """The key of the object with the record of partition 3 and offset 42, without its extension."""
    settings = planned(archive)
    value = case.get("value", GALLERY["value"])
    value = {"payload": value} if case.get("envelope") else value
    rows = batch([Row(42, int(T.timestamp() * 1000), value=json.dumps(value).encode())])
    topic = case.get("topic") or archive.source.topics[0]
    chunk = chunk_of(42, 10).model_copy(update={"topic": topic, "partition": 3})
    form, marks = form_of(settings), Marks()
    stage = time_stage(settings)
    rows = stage(rows, marks) if stage else rows
    paths = Paths(form, chunk, settings)
    [part] = paths.parts(rows, marks).tolist()
    assert not marks
    return f"{archive.store.url}/{form.key(ObjectName(topic, 3, 42), paths.path(part), '')}"


@every
def test_a_published_configuration_gives_the_connector_s_key(case: dict[str, Any]) -> None:
    [migrated] = imported(case).archives
    if "key" not in case:
        assert migrated.problems
        return
    archive = parse_archive(migrated.yaml, "x", {})
    assert key_of(case, archive) == case.get("ours", EXTENSION.sub("", case["key"]))


@every
def test_what_is_not_the_same_is_a_line_of_its_own(case: dict[str, Any]) -> None:
    result = imported(case)
    [archive] = result.archives
    texts = [note.text for note in result.notes if note.kind in OPEN]
    assert len(texts) == len(case["decide"]), texts
    for expected in case["decide"]:
        [*fitting] = [text for text in texts if expected in text]
        assert fitting, (expected, texts)
    for text in texts:
        assert any(expected in text for expected in case["decide"]), text
    if "problem" in case:
        assert any(case["problem"] in problem for problem in archive.problems), archive.problems
    else:
        assert archive.problems == ()


@every
def test_the_yaml_of_a_published_configuration(case: dict[str, Any]) -> None:
    content = yaml.safe_load(imported(case).archives[0].yaml)
    for path, expected in case.get("has", {}).items():
        setting = content
        for name in path.split("."):
            setting = setting[name]
        assert setting == expected, path


VALUES = [b'{"b":1,"a":"\xc3\xa4"}', b'{"b":{"c":[1,2]},"a":null}']


@pytest.mark.parametrize("case", [case for case in CASES if case.get("lines")], ids=lambda case: case["of"])
def test_the_lines_of_an_object_are_the_connector_s(case: dict[str, Any]) -> None:
    [archive] = imported(case).archives
    settings = settings_of(parse_archive(archive.yaml, "x", {}))
    form = get_format(settings.format)
    target = Target(topic="t", partition=3, key="k", settings=settings, schema=SCHEMAS[settings.content])
    encoder = form.encoder(target)
    rows = batch([Row(42 + number, 0, value=value) for number, value in enumerate(VALUES)])
    stage = form.stage(settings)
    pieces = [*encoder.write(stage(rows, Marks()) if stage else rows), *encoder.finish()]
    data = b"".join(map(bytes, pieces))
    data = gzip.decompress(data) if settings.codec == "gzip" else data
    if settings.format == "jsonl":
        # Theirs has an object's fields in another order, as a note says.
        assert [json.loads(line) for line in data.splitlines()] == [json.loads(value) for value in VALUES]
    else:
        # As the connector does: each value, then a line break.
        assert data == b"".join(value + b"\n" for value in VALUES)


def test_the_gallery_is_of_many_repositories() -> None:
    assert len(CASES) >= 50
    assert len({case["of"].split()[0] for case in CASES}) >= 15
    assert sum("key" in case for case in CASES) >= 40

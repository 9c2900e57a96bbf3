"""Runs with transforms: exact accounts, the same bytes again, and their code and keys as the plan has them."""

import gzip
import importlib.metadata
import json
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_archiver.config import parse_archive
from kafka_archiver.context.local_spark import java_version
from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.model.layouts.registry import resolve
from kafka_archiver.model.object_keys import is_dead_letter
from kafka_archiver.model.settings import Settings
from kafka_archiver.model.transforms import Sql, Transform
from kafka_archiver.records.pipeline.decode import storable
from kafka_archiver.records.pipeline.transform.code import load_function
from kafka_archiver.records.pipeline.transform.questions import SqlAnswer
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.dead_letters import forecast_replay, runs_with_letters
from kafka_archiver.work.repair import record_lost
from tests.support.lake import Lake, hour
from tests.support.mappers import write_module

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
NULL = "__HIVE_DEFAULT_PARTITION__"
# Offset 2 has three rows, 3 none, and 5 fails.
VALUES = [b'"a"', b'"b"', b'"c,d,e"', b'""', b'"f"', b'"!"', b'"g,h"', b'"i"']
SPLIT = """
import json
def split(record):
    text = json.loads(record.value)
    if "!" in text:
        raise ValueError("an exclamation mark")
    for part in filter(None, text.split(",")):
        yield record.replace(value=json.dumps(part).encode())
"""
HASHED = """source: {topics: [orders], settle: 0, value: {decode: json, schema: [{name: n, type: int64}]}}
transform: {steps: [{hash: {fields: n, key: pii}}]}
"""


def lake_of(folder: Path, yaml: str, values: list[bytes] = VALUES, keys: dict[str, str] | None = None) -> Lake:
    odd: Any = {(P0, offset): {"value": value} for offset, value in enumerate(values)}
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, len(values))}, odd=odd)
    lake.context = replace(lake.context, keys=keys or {})
    configure(lake, folder, yaml)
    return lake


def configure(lake: Lake, folder: Path, yaml: str, changed: str = "fail") -> None:
    """Edit the YAML, which is a file in the folder of the mappers."""
    more = f"archive: {lake.name}\npolicies: {{bad_record: dead_letter, changed_code: {changed}}}\n"
    store = "store: {url: 's3://unused/x', chunk_records: 3}\n"
    lake.configure(parse_archive(more + store + yaml, str(folder / "orders.yaml")))


def rows_of(lake: Lake) -> list[Any]:
    keys = [key for key in lake.stored() if not is_dead_letter(key)]
    return [json.loads(line) for key in keys for line in gzip.decompress(lake.store.get(key) or b"").splitlines()]


def mapped(name: str, function: str = "split") -> str:
    return f"source: {{topics: [orders], settle: 0}}\ntransform: {{mapper: '{name}:{function}'}}\n"


def test_a_mapper_makes_more_rows_than_offsets_and_everything_adds_up(tmp_path: Path) -> None:
    name = write_module(tmp_path, SPLIT)
    lake = lake_of(tmp_path, mapped(name))
    run = lake.run(7)
    manifest = lake.manifest(run)
    assert manifest.account == manifest.account | {"archived": 6, "filtered": 1, "dead_lettered": 1}
    assert (manifest.rows, rows_of(lake)) == (9, list("abcdefghi"))
    [letter] = [key for key in lake.stored() if is_dead_letter(key)]
    letter_document = json.loads(gzip.decompress(lake.store.get(letter) or b""))
    assert letter_document["error"] == f"the mapper {name}:split raised ValueError: an exclamation mark"
    assert (letter_document["offset"], letter_document["value"]) == (5, '"!"')
    assert not lake.audit(deep=True).findings
    before = {key: lake.store.get(key) for key in lake.stored()}
    # An object is lost: the replay writes the same bytes.
    lost = next(key for key in before if not is_dead_letter(key))
    lake.store.delete(lost)
    lake.run(7)
    assert {key: lake.store.get(key) for key in lake.stored()} == before


def test_changed_code_stops_a_retry_and_a_rebuild_plans_with_the_new_code(tmp_path: Path) -> None:
    name = write_module(tmp_path, SPLIT)
    lake = lake_of(tmp_path, mapped(name))
    run = lake.run(7, until="planned")
    code = tmp_path / f"{name}.py"
    before = code.read_text()
    code.write_text(before.replace("split(", "split (", 1))
    with pytest.raises(PermanentError) as caught:
        lake.run(7)
    assert f"transform.mapper: the code of {name} has changed since the run was planned" in str(caught.value)
    assert f"airflow archive rebuild {lake.name} --run {run}" in str(caught.value)
    assert not lake.stored()
    # With the code as it was, the run goes on.
    code.write_text(before)
    lake.run(7, until="written")
    assert rows_of(lake) == list("abcdefghi")
    code.write_text(before + "# New\n")
    rebuilt = lake.rebuild(run)
    plans = [lake.planned(run_name).settings.transform for run_name in (run, rebuilt)]
    assert [plan and plan.mapper and plan.mapper.function for plan in plans] == [f"{name}:split"] * 2
    assert plans[0] != plans[1]
    assert lake.manifest(rebuilt).rows == 9
    assert not lake.audit(deep=True).findings


@pytest.mark.parametrize("way", ["rebuild", "plan_anew", "dead_letter", "back"])
def test_each_way_on_that_the_error_of_a_mapper_names_works(tmp_path: Path, way: str) -> None:
    name = write_module(tmp_path, SPLIT)
    lake = lake_of(tmp_path, mapped(name))
    lake.choose(bad_record="fail")
    with pytest.raises(PermanentError) as caught:
        lake.run(7)
    run = hour(7).id
    anew = f"with other settings or other code of `transform`: `airflow archive rebuild {lake.name} --run {run}`"
    assert "offset 5: the mapper" in str(caught.value)
    assert "policies.bad_record: dead_letter" in str(caught.value)
    assert anew in str(caught.value)
    code, letters = tmp_path / f"{name}.py", 0
    before = code.read_text()
    if way == "dead_letter":
        letters = 1
        lake.choose(bad_record=way)
    else:
        code.write_text(before.replace('"!" in text', "False"))
        with pytest.raises(PermanentError) as caught:
            lake.run(8)
        assert "`policies.changed_code: plan_anew` does by itself" in str(caught.value)
        assert anew in str(caught.value)
        # A job is a process of its own.
        load_function.cache_clear()
        sys.modules.pop(name)
    if way == "rebuild":
        lake.rebuild(run)
    elif way == "plan_anew":
        lake.choose(changed_code=way)
    elif way == "back":
        code.write_text(before)
        lake.choose(bad_record="skip")
    lake.run(9)
    assert len(rows_of(lake)) == 9 + (way in ("rebuild", "plan_anew"))
    assert len([key for key in lake.stored() if is_dead_letter(key)]) == letters
    assert not lake.audit(deep=True).findings


def test_dead_letters_come_back_once_the_mapper_is_mended(tmp_path: Path) -> None:
    name = write_module(tmp_path, SPLIT)
    lake = lake_of(tmp_path, mapped(name))
    lake.run(7)
    mended = write_module(tmp_path, SPLIT.replace('"!" in text', "False"))
    configure(lake, tmp_path, mapped(mended))
    [letters] = runs_with_letters(lake.context, None)
    forecast = forecast_replay(lake.context, letters)
    assert (forecast.archived, forecast.filtered, forecast.rejected) == (1, 0, 0)
    again = lake.replay()
    account = lake.manifest(again).account
    assert account == account | {"archived": 7, "filtered": 1, "dead_lettered": 0}
    assert sorted(rows_of(lake)) == ["!", *"abcdefghi"]
    assert not lake.audit(deep=True).findings


def test_another_key_is_refused_with_the_plan_as_it_is(tmp_path: Path) -> None:
    values = [b'{"n": %d}' % n for n in range(4)]
    lake = lake_of(tmp_path, HASHED, values, {"pii": "k" * 20})
    run = lake.run(3, until="planned")
    assert b"k" * 20 not in b"".join(lake.store.get(item.key) or b"" for item in lake.store.list(""))
    lake.context = replace(lake.context, keys={"pii": "z" * 20})
    with pytest.raises(PermanentError, match="the password of the Airflow connection 'pii' is another key"):
        lake.run(3)
    lake.context = replace(lake.context, keys={"pii": "k" * 20})
    lake.run(3)
    first = rows_of(lake)
    assert [len(row["n"]) for row in first] == [64] * 4
    assert not lake.audit(deep=True).findings
    lake.context = replace(lake.context, keys={"pii": "z" * 20})
    lake.rebuild(run)
    assert not {row["n"] for row in first} & {row["n"] for row in rows_of(lake)}


def test_what_cannot_be_done_is_refused_before_anything_is_planned(tmp_path: Path) -> None:
    for yaml, message in [
        (mapped(write_module(tmp_path, SPLIT), "splt"), "has no function 'splt'; found .*split"),
        (mapped("nowhere_at_all"), "orders.yaml: transform: Python does not find module nowhere_at_all"),
        (
            "source: {topics: [orders], settle: 0}\ntransform: {steps: [{mask: a}]}\n",
            "the value has no decoded columns",
        ),
        (HASHED.replace("fields: n", "fields: m"), "transform.steps: hash m: value has no field 'm'; it has n"),
    ]:
        lake = lake_of(tmp_path, yaml, keys={"pii": "k" * 20})
        with pytest.raises(ConfigError, match=message):
            lake.run(7)
        assert lake.ledger.plan(hour(7).id) is None


def test_by_choice_a_run_is_planned_anew_if_its_code_has_changed(tmp_path: Path) -> None:
    name = write_module(tmp_path, SPLIT)
    lake = lake_of(tmp_path, mapped(name))
    configure(lake, tmp_path, mapped(name), "plan_anew")
    run = lake.run(7, until="planned")
    code = tmp_path / f"{name}.py"
    code.write_text(code.read_text() + "# New\n")
    lake.run(7)
    assert lake.ledger.manifest(run) is None
    anew = lake.ledger.current(run)
    assert anew
    assert anew.takes_over
    assert lake.manifest(anew.run).rows == 9
    assert not lake.audit(deep=True).findings
    # What is final is not planned anew: its replay says what it finds.
    code.write_text(code.read_text() + "# Newer\n")
    with pytest.raises(PermanentError, match="has changed since the run was planned"):
        lake.run(7)
    # The last records of a later run, and nothing of the earlier one.
    lake.logs[P0] = Range(0, len(VALUES) + 1)
    lake.run(9)
    assert lake.manifest(hour(9).id).account["dead_lettered"] == 1


def test_spark_is_asked_again_only_if_something_has_changed(tmp_path: Path) -> None:
    asked: list[Any] = []
    version = importlib.metadata.version("pyspark")

    def spark(question: Any) -> SqlAnswer:
        asked.append(question)
        schema = '{"type": "struct", "fields": [{"name": "n", "type": "long"}]}'
        return SqlAnswer(spark=version, java=java_version() or "", made=dict.fromkeys(question.topics, schema))

    def yaml(where: str = "value.n > 1", kind: str = "int64") -> str:
        value = f"{{decode: json, schema: [{{name: n, type: {kind}}}]}}"
        return (
            f"source: {{topics: [orders], settle: 0, value: {value}}}\n"
            f"transform: {{where: '{where}', select: [value.n]}}\n"
        )

    lake = lake_of(tmp_path, yaml(), [b'{"n": 1}'] * 9)
    lake.context = replace(lake.context, spark=spark)
    # The second one reads nothing, which forgets nothing.
    runs = [(yaml(), 1), (yaml(), 1), (yaml(), 1), (yaml("value.n > 2"), 2)]
    runs += [(yaml("value.n > 2", "string"), 3)] * 2
    for number, (changed, count) in enumerate(runs, 1):
        if number != 2:
            lake.logs[P0] = Range(0, 8 + number)
        configure(lake, tmp_path, changed)
        lake.run(number, until="planned")
        assert len(asked) == count, number
        frozen = lake.planned(hour(number).id).settings.transform
        assert frozen
        assert frozen.sql
        assert frozen.sql.made.keys() == {"orders"}
    lake.context = replace(lake.context, spark=lambda _: SqlAnswer(error="transform: no such function"))
    configure(lake, tmp_path, yaml("nope(1)"))
    lake.logs[P0] = Range(0, 30)
    with pytest.raises(ConfigError, match=r"orders\.yaml: transform: no such function"):
        lake.run(8, until="planned")
    assert lake.ledger.plan(hour(8).id) is None


SPREAD = """
import json
def spread(record):
    return [record.replace(value=json.dumps({"c": c}).encode()) for c in json.loads(record.value)]
"""


@pytest.mark.parametrize(
    ("values", "lost", "left"),
    [
        ([b'["DE","FR","DE"]', b'["DE"]', b'["IT"]'], ["DE"], (1, 2)),
        # Each lost object has rows of the same record.
        ([b'["DE","FR","IT"]'], ["DE", "FR", "IT"], (0, 0)),
        ([b'["DE","FR","IT"]', b'["DE","FR"]'], ["DE", "FR"], (0, 1)),
    ],
)
def test_objects_with_rows_of_the_same_records_are_lost(
    tmp_path: Path, values: list[bytes], lost: list[str], left: tuple[int, int]
) -> None:
    name = write_module(tmp_path, SPREAD)
    lake = lake_of(tmp_path, mapped(name, "spread"), values)
    yaml = f"archive: {lake.name}\nsource: {{topics: [orders], settle: 0, value: {{decode: json}}}}\n"
    yaml += "store: {url: 's3://unused/x', chunk_records: 3, layout: {fields: [value.c]}}\n"
    yaml += f"transform: {{mapper: '{name}:spread'}}\n"
    lake.configure(parse_archive(yaml, str(tmp_path / "orders.yaml")))
    run = lake.run(len(values) - 1)
    keys = [o.key for o in lake.manifest(run).objects if o.path.removeprefix("c=") in lost]
    assert len(keys) == len(lost)
    # Together, and one after the other.
    for some in keys[:-1], keys[-1:]:
        for key in some:
            lake.store.delete(key)
        if some:
            run = record_lost(lake.context, run, some).run
            assert not lake.audit(deep=True).damage
    manifest = lake.manifest(run)
    assert (manifest.account["archived"], manifest.rows) == left
    assert manifest.account["lost"] == len(values) - left[0] == lake.progress.lost


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ("steps: [{drop: [country]}]", "value.country", "n, at"),
        ("steps: [{rename: {country: land}}]", "value.country", "n, land, at"),
        ("steps: [{flatten: {separator: _}}]", "value.at.city", "n, country, at_city"),
        ("mapper: {function: 'MODULE:spread', schema: [{name: n, type: int64}]}", "value.country", "n"),
    ],
)
def test_a_field_that_a_transform_takes_away_files_no_records(
    tmp_path: Path, change: str, field: str, message: str
) -> None:
    """`missing: null` would file every record without a value, and nobody would see why."""
    schema = "[{name: n, type: int64}, {name: country, type: string}, "
    schema += "{name: at, type: struct, columns: [{name: city, type: string}]}]"
    name = write_module(tmp_path, SPREAD)
    lake = lake_of(tmp_path, mapped(name, "spread"), [b"{}"])
    yaml = f"archive: {lake.name}\nsource: {{topics: [orders], settle: 0, value: {{decode: json, schema: {schema}}}}}\n"
    yaml += f"store: {{url: 's3://unused/x', layout: {{fields: [{{field: {field}, as: p}}], missing: null}}}}\n"
    yaml += f"transform: {{{change.replace('MODULE', name)}}}\n"
    lake.configure(parse_archive(yaml, str(tmp_path / "orders.yaml")))
    with pytest.raises(ConfigError, match=f"store.layout: {field} is no field behind `transform`.*found {message}[.]"):
        lake.run(0)
    assert lake.ledger.plan(hour(0).id) is None


@pytest.mark.parametrize(
    ("change", "folder"),
    [
        ("{}", "f=1.50"),
        ("{steps: [{mask: [key.n, value.m]}, {rename: {m: l}}, {drop: [at.b]}, {flatten: {separator: _}}]}", "f=1.50"),
        ("{steps: [{rename: {n: m, m: n}}]}", "f=2.5"),
        ("{steps: [{mask: n}]}", f"f={NULL}"),
        ("{mapper: 'MODULE:same'}", "f=1.5"),
    ],
)
def test_a_field_that_no_transform_touches_files_a_record_as_without_one(
    tmp_path: Path, change: str, folder: str
) -> None:
    at = "{name: at, type: struct, columns: [{name: a, type: string}, {name: b, type: string}]}"
    schema = f"[{{name: n, type: float64}}, {{name: m, type: float64}}, {at}]"
    name = write_module(tmp_path, "def same(record): return record\n")
    lake = lake_of(tmp_path, mapped(name), [b'{"n": 1.50, "m": 2.50}'])
    yaml_text = f"archive: {lake.name}\nsource: {{topics: [orders], settle: 0, key: KEY, value: KEY}}\n"
    yaml_text = (
        yaml_text.replace("KEY", f"{{decode: json, schema: {schema}}}")
        + f"transform: {change.replace('MODULE', name)}\n"
    )
    yaml_text += "store: {url: 's3://unused/x', metadata: [key], "
    yaml_text += "layout: {path: '{topic}/f={value.n}', missing: null}}\n"
    lake.odd[P0, 0]["key"] = None
    lake.configure(parse_archive(yaml_text, str(tmp_path / "orders.yaml")))
    assert [o.path for o in lake.manifest(lake.run(0)).objects] == [folder]
    assert not lake.audit(deep=True).findings


def test_what_spark_makes_is_known_once_it_was_asked() -> None:
    kind = {"type": "struct", "fields": [{"name": "m", "type": "long", "nullable": True, "metadata": {}}]}
    for columns_by_topic, field, fits in [
        ({}, "value.m", True),
        ({"orders": kind}, "value.m", True),
        ({"orders": kind}, "value.n", False),
    ]:
        sql = Sql(
            select=("value.n AS m",), made={topic: json.dumps(columns) for topic, columns in columns_by_topic.items()}
        )
        layout = {"fields": [{"field": field, "as": "p"}]}
        settings = resolve(Settings(layout="fields", layout_options=layout, value_decode="json"))
        settings = settings.model_copy(update={"transform": Transform(sql=sql), "codec": "none"})
        if fits:
            storable(settings, "orders", ())
        else:
            with pytest.raises(ConfigError, match=r"value.n is no field behind `transform`.*found m[.]"):
                storable(settings, "orders", ())

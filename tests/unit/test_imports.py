"""The import of other tools' configurations: examples, also that of the docs, and every key that a tool documents."""

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_archiver.config import parse_archive
from kafka_archiver.imports.base import Imported, Keys, Note
from kafka_archiver.imports.registry import TOOLS, import_text
from kafka_archiver.imports.text import to_yaml
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.cli.imported_yaml import ImportResult, archives_of
from kafka_archiver.planning.settings import settings_of
from scripts.stack.paths import ROOT
from tests.support import documented_keys

_ENTRY = re.compile(r"##+ ([^\n]*)\n\n```\w+\n(.*?)```\n\n```yaml\n(.*?)```\n", re.DOTALL)
_FILES = (ROOT / "tests/unit/gallery/examples.md", ROOT / "docs/howto/handover.md")
GALLERY = {name: (source, output) for file in _FILES for name, source, output in _ENTRY.findall(file.read_text())}
FORMAT = "io.confluent.connect.s3.format"
PARTITIONER = "io.confluent.connect.storage.partitioner"
SELECT = "INSERT INTO bkt:p SELECT * FROM t"
# The least that each tool needs.
LEAST = {
    "confluent": {
        "name": "n",
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "t",
        "s3.bucket.name": "b",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "100000",
    },
    "cloud": {
        "name": "n",
        "connector.class": "S3_SINK",
        "topics": "t",
        "s3.bucket.name": "b",
        "input.data.format": "JSON",
        "output.data.format": "JSON",
        "flush.size": "100000",
    },
    "aiven": {
        "name": "n",
        "connector.class": "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",
        "topics": "t",
        "aws.s3.bucket.name": "b",
    },
    "lenses": {"name": "n", "topics": "t", "connect.s3.kcql": "INSERT INTO b:p SELECT * FROM t"},
    "deviantart": {
        "name": "n",
        "connector.class": "com.deviantart.kafka_connect_s3.S3SinkConnector",
        "topics": "t",
        "s3.bucket": "b",
    },
    "zooz": {"SOURCE_KAFKA_TOPIC": "t", "S3_BUCKET_NAME": "b"},
    "kafkatos3": {"consumer.kafka_consumer_group": "g", "consumer.topic_whitelist": "t", "s3.s3_bucket_name": "b"},
}
KEYS = {
    "confluent": documented_keys.CONFLUENT,
    "cloud": documented_keys.CLOUD,
    "aiven": documented_keys.AIVEN,
    "lenses": documented_keys.LENSES + documented_keys.LENSES_OLDER,
    "deviantart": documented_keys.DEVIANTART,
    "zooz": documented_keys.ZOOZ,
    "kafkatos3": documented_keys.KAFKATOS3,
}


def text_of(tool: str, keys: dict[str, str]) -> str:
    if tool != "kafkatos3":
        return "\n".join(f"{key}={value}" for key, value in keys.items())
    sections = dict.fromkeys(key.split(".", 1)[0] for key in keys)
    lines = {s: [f"{k.split('.', 1)[1]} = {v}" for k, v in keys.items() if k.startswith(f"{s}.")] for s in sections}
    return "\n".join(f"[{section}]\n" + "\n".join(settings) for section, settings in lines.items())


def made_of(tool: str, **more: str) -> tuple[Imported, dict[str, Any]]:
    """The import of a tool's least keys and more (with `_` for dots); the first archive's content."""
    keys = LEAST[tool] | {key.replace("__", "."): value for key, value in more.items()}
    imported, _ = import_text(text_of(tool, keys), "file")
    return imported, imported.drafts[0].content


def noted(imported: Imported, key: str) -> list[Note]:
    return [note for note in imported.notes if note.key == key]


@pytest.mark.parametrize("name", GALLERY)
def test_the_gallery_is_what_the_command_makes(name: str) -> None:
    source, output = GALLERY[name]
    imported, keys = import_text(source, "file")
    texts = [to_yaml(imported, draft, keys, "file") for draft in imported.drafts]
    assert "---\n".join(text.split("\n\n", 1)[1] for text in texts) == output
    # Every key has one note, and none is unknown.
    assert [note.key for note in imported.notes if note.kind == "unknown"] == []
    named = [note.key for note in imported.notes if note.key]
    assert sorted(named) == sorted(set(named))
    assert set(named) == set(keys.starting(""))
    for text in texts:
        assert "not-shown" not in text
        assert "AKIDEXAMPLE" not in text
        assert all(len(line) <= 122 or " " not in line.strip("# -") for line in text.split("\n\n")[0].splitlines())


@pytest.mark.parametrize("name", GALLERY)
def test_our_own_loader_takes_the_gallery(name: str) -> None:
    # The group of a managed connector is not in its configuration.
    imported, keys = import_text(GALLERY[name][0], "file", group="connect-lcc-1" if "Cloud" in name else None)
    for draft in imported.drafts:
        archive = parse_archive(to_yaml(imported, draft, keys, "file"), "x", {})
        settings_of(archive)
        assert archive.source.old_group


@pytest.mark.parametrize(
    ("tool", "more"),
    [
        (
            "confluent",
            {"partitioner__class": f"{PARTITIONER}.DailyPartitioner", "locale": "de_DE", "timezone": "Europe/Berlin"},
        ),
        ("confluent", {"partitioner__class": f"{PARTITIONER}.HourlyPartitioner", "timestamp__extractor": "Record"}),
        ("confluent", {"partitioner__class": f"{PARTITIONER}.FieldPartitioner", "partition__field__name": "a.b,c"}),
        ("confluent", {"file__delim": "-", "directory__delim": "/", "filename__offset__zero__pad__width": "5"}),
        ("confluent", {"format__class": f"{FORMAT}.bytearray.ByteArrayFormat"}),
        ("confluent", {"format__class": f"{FORMAT}.avro.AvroFormat", "avro__codec": "snappy"}),
        ("confluent", {"format__class": f"{FORMAT}.parquet.ParquetFormat", "store__kafka__keys": "true"}),
        ("confluent", {"store__kafka__keys": "true", "store__kafka__headers": "true", "s3__sse__customer__key": "k"}),
        ("confluent", {"value__converter": "io.confluent.connect.protobuf.ProtobufConverter"}),
        ("confluent", {"s3__acl__canned": "private", "s3__ssea__name": "aws:kms"}),
        ("lenses", {"connect__s3__kcql": f"{SELECT} PARTITIONBY _key.id, _value.x, _header.h"}),
        ("lenses", {"connect__s3__kcql": f"{SELECT} PARTITIONBY _key STOREAS `AVRO`"}),
        ("lenses", {"connect__s3__kcql": f"{SELECT} PARTITIONBY _topic, _partition, _date.yyyy-MM-dd"}),
        ("lenses", {"connect__s3__kcql": f"{SELECT} STOREAS `CSV`"}),
        ("lenses", {"connect__s3__compression__codec": "ZSTD"}),
        ("zooz", {"APP_ID": "a b", "FLUSH_INTERVAL_MINUTES": "7"}),
    ],
)
def test_our_own_loader_takes_what_keys_may_say(tool: str, more: dict[str, str]) -> None:
    names = {key.replace("__", "."): value for key, value in more.items()}
    imported, keys = import_text(text_of(tool, LEAST[tool] | names), "file")
    settings_of(parse_archive(to_yaml(imported, imported.drafts[0], keys, "file"), "x", {}))


def test_every_tool_is_in_the_gallery() -> None:
    tools = {import_text(source, "file")[0].tool for source, _ in GALLERY.values()}
    assert tools == {tool.name for tool in TOOLS.values()}


@pytest.mark.parametrize(("tool", "key"), [(tool, key) for tool, keys in KEYS.items() for key in keys])
def test_every_documented_key_is_understood(tool: str, key: str) -> None:
    keys = LEAST[tool] | {key: LEAST[tool].get(key, "x")}
    imported, read = import_text(text_of(tool, keys), "file", tool)
    assert [note.key for note in imported.notes if note.kind == "unknown"] == []
    assert all(note.text for note in imported.notes)
    assert len([note for note in imported.notes if note.key]) == len(read.starting(""))


@pytest.mark.parametrize("tool", TOOLS)
def test_a_key_that_no_tool_documents_is_told(tool: str) -> None:
    keys = LEAST[tool] | {"s3.no.such.key" if tool != "kafkatos3" else "s3.no_such_key": "x"}
    imported, _ = import_text(text_of(tool, keys), "file")
    [unknown] = [note for note in imported.notes if note.kind == "unknown"]
    assert unknown.text == f"{TOOLS[tool].name} documents no such key"


@pytest.mark.parametrize("tool", TOOLS)
def test_the_archive_starts_where_the_old_group_has_stopped(tool: str) -> None:
    groups = {"zooz": "s3-connector", "kafkatos3": "g"}
    if tool == "cloud":
        # Its group has the connector's id.
        assert "start" not in made_of(tool)[1]["source"]
    else:
        assert made_of(tool)[1]["source"]["start"] == f"group:{groups.get(tool, 'connect-n')}"
    archives, _ = import_text(text_of(tool, LEAST[tool]), "file", group="another")
    assert archives.drafts[0].content["source"]["start"] == "group:another"


def test_a_connector_s_own_group_is_taken_and_a_missing_name_is_told() -> None:
    _, content = made_of("confluent", consumer__override__group__id="own")
    assert content["source"]["start"] == "group:own"
    keys = {key: value for key, value in LEAST["confluent"].items() if key != "name"}
    imported, _ = import_text(text_of("confluent", keys), "file")
    assert "start" not in imported.drafts[0].content["source"]
    assert any("say it with --group" in note.text for note in imported.notes if note.kind == "decide")


@pytest.mark.parametrize(
    ("more", "path", "expected"),
    [
        ({}, ("store", "codec"), "none"),
        ({"s3__compression__type": "gzip"}, ("store", "codec"), "gzip"),
        ({"topics__dir": ""}, ("store", "url"), "s3://b"),
        ({"topics__dir": "a/b/"}, ("store", "url"), "s3://b/a/b"),
        ({"filename__offset__zero__pad__width": "6"}, ("store", "layout", "zero_pad"), 6),
        ({"behavior__on__null__values": "ignore"}, ("policies", "null_value"), "skip"),
        ({"errors__tolerance": "all"}, ("policies", "bad_record"), "skip"),
        ({"rotate__schedule__interval__ms": "86400000"}, ("schedule",), "0 0 * * *"),
        ({"rotate__schedule__interval__ms": "61000"}, ("schedule",), None),
        ({"store__url": "http://minio:9000"}, ("store", "aws"), {"endpoint_url": "http://minio:9000"}),
        ({"store__url": "http://u:p@minio:9000"}, ("store", "aws"), "aws_default"),
        ({"s3__ssea__name": "AES256"}, ("store", "encryption"), "sse-s3"),
        ({"s3__sse__customer__key": "k"}, ("store", "encryption"), {"sse-c": {"connection": "sse_c_key"}}),
        ({"store__kafka__keys": "true"}, ("store", "content"), "record"),
        ({"partitioner__class": f"{PARTITIONER}.DailyPartitioner"}, ("timestamp",), {"from": "wallclock"}),
        (
            {
                "partitioner__class": f"{PARTITIONER}.HourlyPartitioner",
                "timestamp__extractor": "Record",
                "timezone": "UTC",
            },
            ("store", "layout"),
            {"name": "confluent_hourly", "timezone": "UTC"},
        ),
        ({"format__class": "io.confluent.connect.s3.format.bytearray.ByteArrayFormat"}, ("store", "format"), "bytes"),
        ({"topics__regex": "a.*"}, ("source", "pattern"), "a.*"),
    ],
)
def test_confluent_s_keys_have_their_effect(more: dict[str, str], path: tuple[str, ...], expected: Any) -> None:
    setting: Any = made_of("confluent", **more)[1]
    for key in path:
        setting = (setting or {}).get(key)
    assert setting == expected


CONNECT = "org.apache.kafka.connect.transforms"
JSON_PLAIN = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
AVRO = {"format.class": f"{FORMAT}.avro.AvroFormat", "value.converter": "io.confluent.connect.avro.AvroConverter"}


def transformed(more: dict[str, str], **transforms: str) -> tuple[dict[str, Any], dict[str, Note]]:
    """The content, and the notes by key, of a connector with transforms: each a class and its settings."""
    keys = {**LEAST["confluent"], **more, "transforms": ",".join(transforms)}
    for name, options in transforms.items():
        kind, *settings = options.split()
        keys[f"transforms.{name}.type"] = f"{CONNECT}.{kind}"
        keys |= {f"transforms.{name}.{key}": value for key, value in (setting.split("=") for setting in settings)}
    imported, read = import_text(text_of("confluent", keys), "file")
    assert [note for note in imported.notes if note.kind == "unknown"] == []
    named = [note.key for note in imported.notes if note.key]
    assert sorted(named) == sorted(read.starting(""))
    settings_of(parse_archive(to_yaml(imported, imported.drafts[0], read, "file"), "x", {}))
    return imported.drafts[0].content, {note.key: note for note in imported.notes}


def test_transforms_of_connect_become_steps() -> None:
    content, notes = transformed(
        AVRO,
        route="RegexRouter regex=a replacement=b",
        fields="ReplaceField$Value exclude=a,b.c renames=d:e,f:g",
        hide="MaskField$Value fields=card,key replacement=x",
        key="MaskField$Key fields=id",
        flat="Flatten$Value delimiter=_",
    )
    assert content["transform"]["steps"] == [
        {"drop": ["value.a", "value.`b.c`"]},
        {"rename": {"value.d": "e", "value.f": "g"}},
        {"mask": ["value.card", "value.key"]},
        {"flatten": {"separator": "_"}},
    ]
    kinds = {name: notes[f"transforms.{name}.type"].kind for name in ("route", "fields", "hide", "key", "flat")}
    # The router changes no topic of these; keys are not stored.
    assert kinds == {"route": "kept", "fields": "kept", "hide": "differs", "key": "kept", "flat": "kept"}
    assert transformed(AVRO, flat="Flatten$Value")[0]["transform"]["steps"] == [{"flatten": {"separator": "."}}]


def test_a_transform_without_an_equivalent_says_what_to_do_and_no_later_one_is_taken() -> None:
    content, notes = transformed(
        AVRO,
        times="TimestampConverter$Value field=at target.type=string",
        hide="MaskField$Value fields=a",
        out="ExtractField$Value field=after",
        flat="Flatten$Value",
    )
    assert content["transform"]["steps"] == [{"mask": ["value.a"]}]
    assert "timestamp_millis" in notes["transforms.times.type"].text
    assert "transform.select" in notes["transforms.out.type"].text
    assert (
        notes["transforms.flat.type"].text
        == "by hand, because out before it has no equivalent: {flatten: {separator: .}}"
    )
    assert {notes[f"transforms.{name}.type"].kind for name in ("times", "out", "flat")} == {"decide"}


@pytest.mark.parametrize(
    ("transforms", "expected"),
    [
        ({"a": "InsertField$Value static.field=env static.value=it's"}, {"select": ["*", r"'it\'s' AS `env`"]}),
        (
            {"a": "InsertField$Value topic.field=t partition.field=p! offset.field=o? timestamp.field=at"},
            {"select": ["*", "topic AS `t`", "partition AS `p`", "offset AS `o`", "timestamp AS `at`"]},
        ),
        (
            {"a": "Cast$Value spec=n:int32,price:string"},
            {
                "select": [
                    "* EXCEPT (`n`, `price`)",
                    "CAST(value.`n` AS INT) AS `n`",
                    "CAST(value.`price` AS STRING) AS `price`",
                ]
            },
        ),
        (
            {"a": "ReplaceField$Value include=id,name renames=name:who", "m": "MaskField$Value fields=who"},
            {"select": ["value.`id`", "value.`name` AS `who`"], "steps": [{"mask": ["value.who"]}]},
        ),
        ({"a": "ReplaceField$Value whitelist=id,name blacklist=name"}, {"select": ["value.`id`"]}),
        ({"a": "HoistField$Value field=line"}, {"select": ["struct(value.*) AS `line`"]}),
        (
            {"a": "ExtractField$Value field=after", "b": "Cast$Value spec=id:int64", "c": "Flatten$Value"},
            {
                "select": ["value.`after`.* EXCEPT (`id`)", "CAST(value.`after`.`id` AS BIGINT) AS `id`"],
                "steps": [{"flatten": {"separator": "."}}],
            },
        ),
        # SQL works before the steps: what a step has changed before it is another column.
        (
            {"m": "MaskField$Value fields=card", "a": "InsertField$Value topic.field=t"},
            {"select": ["*", "topic AS `t`"], "steps": [{"mask": ["value.card"]}]},
        ),
        ({"m": "MaskField$Value fields=t", "a": "InsertField$Value topic.field=t"}, {"steps": [{"mask": ["value.t"]}]}),
        # Of the whole value, of a type that Spark lacks.
        ({"a": "Cast$Value spec=int32"}, None),
        ({"a": "Cast$Value spec=n:int33"}, None),
    ],
)
def test_transforms_of_connect_become_sql(transforms: dict[str, str], expected: Any) -> None:
    content, notes = transformed(AVRO, **transforms)
    assert content.get("transform") == expected
    if not expected or "select" not in expected:
        assert notes["transforms.a.type"].kind == "decide"


def test_a_value_that_a_transform_makes_null_is_left_out_as_the_connector_does() -> None:
    content, _ = transformed(AVRO | {"behavior.on.null.values": "ignore"}, a="ExtractField$Value field=after")
    assert content["transform"] == {"where": "value.`after` IS NOT NULL", "select": ["value.`after`.*"]}


@pytest.mark.parametrize(
    ("predicate", "negate", "expected"),
    [
        ("HasHeaderKey name=x'y", "false", r"NOT (coalesce(exists(headers, h -> h.key = 'x\'y'), false))"),
        ("HasHeaderKey name=x", "true", "coalesce(exists(headers, h -> h.key = 'x'), false)"),
        ("TopicNameMatches pattern=a\\d|b", "false", r"NOT (topic RLIKE '^(?:a\\d|b)$')"),
        ("com.acme.Other", "false", None),
    ],
)
def test_a_filter_with_a_predicate_is_a_condition(predicate: str, negate: str, expected: str | None) -> None:
    kind, *options = predicate.split()
    kind = kind if "." in kind else f"{CONNECT}.predicates.{kind}"
    more = {"predicates": "p", "predicates.p.type": kind}
    more |= {
        f"predicates.p.{key}": value.replace("\\", "\\\\") for key, value in (option.split("=") for option in options)
    }
    content, notes = transformed(more, f=f"Filter predicate=p negate={negate}")
    assert content.get("transform", {}).get("where") == expected
    assert notes["transforms.f.type"].kind == ("kept" if expected else "decide")


def refused(more: dict[str, str]) -> tuple[dict[str, Any], str]:
    """The content of a connector's archive, and why its YAML is refused, or its plan."""
    imported, read = import_text(text_of("confluent", LEAST["confluent"] | more), "file")
    content = imported.drafts[0].content
    try:
        settings_of(parse_archive(to_yaml(imported, imported.drafts[0], read, "file"), "x", {}))
    except ConfigError as error:
        return content, str(error)
    return content, ""


def test_a_filter_behind_what_changes_its_condition_is_not_taken() -> None:
    trace = {"predicates": "p", "predicates.p.type": f"{CONNECT}.predicates.HasHeaderKey", "predicates.p.name": "x"}
    for before in ("InsertHeader header=x value.literal=1", "DropHeaders headers=x"):
        content, notes = transformed(trace, h=before, f="Filter predicate=p")
        assert "transform" not in content
        assert notes["transforms.f.type"].kind == "decide"
    topic = trace | {"predicates.p.type": f"{CONNECT}.predicates.TopicNameMatches", "predicates.p.pattern": "a"}
    content, notes = transformed(topic, r="RegexRouter regex=t replacement=a", f="Filter predicate=p")
    assert "transform" not in content
    assert {notes["transforms.f.type"].kind, notes["transforms.r.type"].kind} == {"decide"}


BY_OWN_TIME = {
    "partitioner.class": f"{PARTITIONER}.DailyPartitioner",
    "timezone": "UTC",
    "timestamp.extractor": "RecordField",
    "timestamp.field": "at",
}


@pytest.mark.parametrize("more", [AVRO, {}, JSON_PLAIN], ids=["avro", "json", "json without schemas"])
def test_a_field_that_has_kafka_s_time_is_kafka_s_time(more: dict[str, str]) -> None:
    assert transformed(BY_OWN_TIME | more, t="InsertField$Value timestamp.field=at")[0]["timestamp"] == {
        "from": "record"
    }
    content, _ = transformed(BY_OWN_TIME | more, t="InsertField$Value timestamp.field=at predicate=p")
    assert content["timestamp"]["from"] == "value"


def test_a_time_that_a_transform_may_have_made_is_a_question() -> None:
    keys = {**LEAST["confluent"], **AVRO, **BY_OWN_TIME, "transforms": "r"}
    keys |= {"transforms.r.type": f"{CONNECT}.ReplaceField$Value", "transforms.r.renames": "created:at"}
    imported, _ = import_text(text_of("confluent", keys), "file")
    assert [note for note in imported.notes if note.kind == "decide" and "timestamp.path is of the record" in note.text]


@pytest.mark.parametrize("key", ["file.delim", "directory.delim"])
def test_an_empty_delimiter_is_not_taken_for_the_default(key: str) -> None:
    imported, _ = import_text(text_of("confluent", LEAST["confluent"] | {key: ""}), "file")
    assert [note.kind for note in noted(imported, key)] == ["decide"]


def test_what_hides_values_is_never_left_out() -> None:
    mask = {"transforms": "m", "transforms.m.type": f"{CONNECT}.MaskField$Value", "transforms.m.fields": "card"}
    steps = [{"mask": ["value.card"]}]
    # The values have no columns: the plan is refused, because the step needs them.
    assert refused(mask)[0]["transform"] == {"steps": steps}
    # For some records: for all.
    conditional = mask | {"transforms.m.predicate": "p"}
    assert refused(AVRO | conditional)[0]["transform"] == {"steps": steps}
    # Of another class, and behind a transform that is not understood.
    for more in (
        {"transforms.m.type": "com.acme.MaskField$Value"},
        {"transforms.m.type": "io.aiven.kafka.connect.transforms.Hash$Value"},
        {"transforms": "x,m", "transforms.x.type": "com.acme.Other"},
        {"transforms.m.type": f"{CONNECT}.ReplaceField$Value", "transforms.m.include": "a", "transforms": "f,m",
         "transforms.f.type": f"{CONNECT}.Flatten$Value"},
    ):  # fmt: skip
        content, why = refused(AVRO | mask | more)
        assert content["transform"]["mapper"] == "imported_transforms:hide_m"
        assert "transform: Python does not find module imported_transforms" in why


@pytest.mark.parametrize(
    ("key", "value"), [("partitioner.class", "a.B"), ("format.class", "a.B"), ("value.converter", "a.B")]
)
def test_a_class_of_one_s_own_has_no_equivalent(key: str, value: str) -> None:
    imported, _ = made_of("confluent", **{key.replace(".", "__"): value})
    [note] = noted(imported, key)
    assert note.kind == "decide"


@pytest.mark.parametrize("tool", ["confluent", "cloud", "aiven"])
def test_a_class_of_another_tool_is_a_question(tool: str) -> None:
    keys = LEAST[tool] | {"connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector"}
    assert noted(import_text(text_of(tool, keys), "file", tool)[0], "connector.class")[0].kind == "decide"
    # A short name is what the person says it is.
    for short in ("S3Sink", "S3SinkConnector"):
        keys["connector.class"] = short
        assert noted(import_text(text_of(tool, keys), "file", tool)[0], "connector.class")[0].kind == "kept"
        with pytest.raises(ConfigError, match="is a short name, which several tools have; say whose it is with --from"):
            import_text(text_of(tool, keys), "file")
    with pytest.raises(ConfigError, match=r"expected a connector that writes to S3; found io.aiven"):
        import_text("connector.class=io.aiven.kafka.connect.s3.source.S3SourceConnector", "file")
    with pytest.raises(ConfigError, match="--worker is for connectors of Kafka Connect; Zooz"):
        import_text(text_of("zooz", LEAST["zooz"]), "file", worker=JSON_PLAIN)


def test_what_is_read_by_a_wrong_tool_is_told() -> None:
    with pytest.raises(ConfigError) as caught:
        import_text("connector.class=io.aiven.S3\ntopics=t\n", "file")
    message = str(caught.value)
    assert message.startswith("file: the configuration of no known tool; found connector.class io.aiven.S3. Understood")
    assert all(tool.name in message for tool in TOOLS.values())
    assert "--from confluent|cloud|aiven|lenses|deviantart|zooz|kafkatos3" in message
    with pytest.raises(ConfigError, match=r"found the keys a, b\. Understood"):
        import_text("a=1\nb=2\n", "file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found no key"),
        ("# no keys here", "found no key"),
        ("a.b=\\u12", "file: not Java properties: expected \\u and four hexadecimal digits"),
        ("a.b=\\ud800", "file: a.b: expected text; found one half of a surrogate pair"),
        ('{"a": ', "file: not JSON: line 1"),
        ('{"name": "x", "tasks": []}', "found a list or a mapping in tasks"),
        ("[s3]\n[s3]\n", "file: not an ini file: duplicate section error (line 2)"),
        ("[s3]\nnonsense\n", "file: not an ini file"),
        ("connect.s3.kcql=SELECT * FROM t", "file: KCQL, statement 1: expected INSERT; found 'SELECT'"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        import_text(text, "file")


def test_json_may_be_bare_or_named() -> None:
    bare = '{"name": "n", "connector.class": "com.deviantart.kafka_connect_s3.S3SinkConnector", "s3.path_style": true}'
    named = (
        '{"name": "n", "config": {"connector.class": "com.deviantart.kafka_connect_s3.S3SinkConnector", '
        '"s3.path_style": true, "x": null}}'
    )
    drafts = [import_text(text, "file")[0].drafts for text in (bare, named)]
    assert drafts[0] == drafts[1]
    assert drafts[0][0].content["store"]["aws"] == {"addressing_style": "path"}


def made_from(tool: str, more: dict[str, str]) -> ImportResult:
    return archives_of(text_of(tool, LEAST[tool] | more), "file", tool)


def test_properties_are_read_as_java_reads_them() -> None:
    properties = r"""
! a comment
# another = one
name : n
connector.class io.confluent.connect.s3.S3SinkConnector
topics.regex=orders_\\d+
s3.bucket.name=b\u0061
topics.dir=a,\
    b # c
file.delim=\u002d
format.class=io.confluent.connect.s3.format.json.JsonFormat
flush.size="1"
"""
    [archive] = archives_of(properties, "file").archives
    content = yaml.safe_load(archive.yaml)
    assert content["source"]["pattern"] == r"orders_\d+"
    assert content["store"]["url"] == "s3://ba/a,b # c"
    assert content["store"]["layout"] == {"name": "confluent_default", "file_delimiter": "-"}
    assert 'flush.size="1": expected a whole number from 1, found \'"1"\'' in archive.yaml


PROVIDER = "s3.credentials.provider.class"
JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
BY_FIELD = {"partitioner.class": f"{PARTITIONER}.FieldPartitioner", "partition.field.name": "a.b"}
BY_TIME = {
    "partitioner.class": f"{PARTITIONER}.HourlyPartitioner",
    "timestamp.extractor": "RecordField",
    "timestamp.field": "a",
}


@pytest.mark.parametrize(
    ("tool", "more", "path", "expected"),
    [
        # JsonConverter's envelope is the default, and is stored.
        ("confluent", JSON | BY_FIELD, "store.layout.fields", [{"field": "value.payload.a.b", "as": "a.b"}]),
        ("confluent", JSON | BY_FIELD | {"value.converter.schemas.enable": "false"}, "store.layout.fields",
         [{"field": "value.a.b", "as": "a.b"}]),
        ("confluent", JSON | BY_TIME, "timestamp.path", "payload.a"),
        ("lenses", JSON | {"connect.s3.kcql": f"{SELECT} PARTITIONBY _value.a, _key"}, "store.layout.fields",
         ["value.payload.a", "key"]),
        # A chunk of one record, dates, whitelists.
        ("lenses", {"connect.s3.kcql": f"{SELECT} PARTITIONBY _date.uuuu, _date.LL, _date.DDD"}, "store.layout.path",
         "date={yyyy}/date={MM}/date={DDD}"),
        ("lenses", {"connect.s3.kcql": f"{SELECT} PARTITIONBY _date.`uuuu 'w'xx`"}, "store.layout.path",
         "date={yyyy 'w'Z}"),
        ("lenses", {"connect.s3.kcql": f"{SELECT} PARTITIONBY _date.QQ"}, "store.layout.path", "date={yyyy-MM-dd}"),
        ("kafkatos3", {"consumer.topic_whitelist": "^a,b.c", "consumer.consumer_class": "KafkaConfluentConsumer"},
         "source.pattern", r"^a.*|b\.c"),
        ("deviantart", {}, "timestamp", {"from": "wallclock"}),
        # Kafka Connect's providers.
        ("confluent", {"topics.dir": "${env:STAGE}/x"}, "store.url", "s3://b/${STAGE}/x"),
        ("zooz", {"S3_ROOT_PATH": "${STAGE}"}, "store.url", "s3://b/$${STAGE}/s3-connector"),
        ("zooz", {"S3_ROOT_PATH": "x/", "APP_ID": "t"}, "store.url", "s3://b/x"),
        ("zooz", {"S3_ROOT_PATH": "x/", "APP_ID": "t"}, "store.layout", "zooz"),
        ("zooz", {"APP_ID": "a/b"}, "store.url", "s3://b/a_b"),
        ("zooz", {"S3_PATTERN_PATH": "y=%s"}, "store.layout.path", "y={yyyy-MM-dd}"),
        ("zooz", {"COMPRESSION_TYPE": "SNAPPY"}, "store.codec", "snappy"),
        ("zooz", {"S3_EXTENSTION": "log"}, "store.options.extension", ".log"),
        ("kafkatos3", {"main.working_directory": "/d/"}, "store.url", "s3://b/kafkatos3/d/tos3"),
        ("kafkatos3", {}, "store.name", "{topic}-{partition}_{start}"),
        # What has no records.
        ("confluent", {"format.class": f"{FORMAT}.bytearray.ByteArrayFormat", "store.kafka.keys": "true"},
         "store.content", None),
        ("confluent", AVRO | {"format.class": f"{FORMAT}.bytearray.ByteArrayFormat"}, "source.value", None),
        ("lenses", {"connect.s3.kcql": f"{SELECT} STOREAS `TEXT` PROPERTIES('store.envelope'=true)"}, "store.content",
         None),
        ("lenses", AVRO | {"key.converter": AVRO["value.converter"], "connect.s3.kcql":
         f"{SELECT} PARTITIONBY _key.id STOREAS `AVRO`"}, "store.metadata", ["key"]),
        ("confluent", {"s3.acl.canned": "log-delivery-write"}, "store.acl", None),
    ],
)  # fmt: skip
def test_the_yaml_has(tool: str, more: dict[str, str], path: str, expected: Any) -> None:
    [archive] = made_from(tool, more).archives
    setting: Any = yaml.safe_load(archive.yaml)
    for key in path.split("."):
        setting = (setting or {}).get(key)
    assert setting == expected
    assert all("is not replaced here" in problem for problem in archive.problems)


@pytest.mark.parametrize(
    ("tool", "more", "kind", "text"),
    [
        ("confluent", {"flush.size": "abc"}, "decide", "1, found 'abc'; store.chunk_records is left out: 1000000"),
        ("confluent", {"flush.size": "9" * 5000}, "decide", "expected a whole number from 1, found '999"),
        ("confluent", {"flush.size": "1"}, "by_hand", "many tiny objects"),
        ("confluent", {"s3.part.size": "5MB"}, "decide", "found '5MB'; store.part_bytes is left out: 8388608"),
        ("confluent", {"partition.duration.ms": "-1", "partitioner.class": f"{PARTITIONER}.TimeBasedPartitioner",
                       "path.format": "YYYY"}, "decide", "from 1, found '-1'; store.layout.every is left out"),
        ("confluent", {"filename.offset.zero.pad.width": "x"}, "decide", "from 0, found 'x'"),
        ("lenses", {"connect.s3.kcql": f"{SELECT} PROPERTIES('flush.count'=x)"}, "by_hand", "found 'x'; its default"),
        ("lenses", {"connect.s3.kcql": f"{SELECT} WITH_FLUSH_COUNT = 1"}, "by_hand", "many tiny objects"),
        ("lenses", {"connect.s3.kcql": f"{SELECT} PARTITIONBY _date.QQ"}, "decide", "'QQ' in 'QQ' has no equal here"),
        ("lenses", {"connect.s3.kcql": f"{SELECT} PARTITIONBY _date.YYYY"}, "decide", "weeks are those of ISO 8601"),
        ("lenses", {"connect.s3.kcql": f"{SELECT} PARTITIONBY _date.yyyy"}, "decide", "by its worker's time zone"),
        ("zooz", {"FLUSH_INTERVAL_MINUTES": "often"}, "decide", "found 'often'; schedule: every 15 minutes"),
        ("deviantart", {"compressed_block_size": "big"}, "decide", "found 'big'; store.options is left out: 6710"),
        ("deviantart", {"s3.prefix": "/x"}, "decide", "its keys have empty folders"),
        ("deviantart", JSON, "decide", "the text that Java makes of the converted value"),
        ("deviantart", {}, "decide", "the file has no value.converter"),
        ("deviantart", {"compressed_block_size": "9"}, "decide", "65536, which is the least"),
        ("zooz", {"S3_ROOT_PATH": "/x"}, "decide", "its keys have empty folders"),
        ("zooz", {"S3_PATTERN_PATH": "%d"}, "decide", "expected two %s, for the date and the hour"),
        ("zooz", {"COMPRESSION_TYPE": "gzip"}, "decide", "or the service does not start"),
        ("zooz", {}, "decide", "theirs are of its machine's time zone"),
        ("zooz", {}, "differs", "a name has its topic"),
        ("deviantart", {}, "by_hand", "last_chunk_index.<topic>-<partition>.txt"),
        ("confluent", {PROVIDER: "my.Provider"}, "by_hand", "no Java class runs here. Give what"),
        ("confluent", {PROVIDER: "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider"}, "by_hand",
         "connection aws_default (type aws): role_arn"),
        ("confluent", {PROVIDER: "com.amazonaws.auth.DefaultAWSCredentialsProviderChain"},
         "kept", "nothing: boto3 finds the same credentials"),
    ],
)  # fmt: skip
def test_the_report_says(tool: str, more: dict[str, str], kind: str, text: str) -> None:
    result = made_from(tool, more)
    assert [note for note in result.notes if note.kind == kind and text in note.text]
    assert [archive.problems for archive in result.archives] == [()]


@pytest.mark.parametrize(
    ("tool", "more", "problem"),
    [
        ("confluent", {"topics.dir": "${file:/p:dir}"}, "`store.url`: ${file:/p:dir} is not replaced here"),
        ("confluent", {"topics": "a,b c"}, "`source.topics.1`: expected the name of a topic"),
        ("confluent", {"topics": ".."}, "`source.topics.0`: expected the name of a topic"),
        ("confluent", {"topics": "x" * 250}, "`source.topics.0`: expected the name of a topic"),
        ("confluent", {"topics": ""}, "`source.topics`: expected at least one topic"),
        ("zooz", {"SOURCE_KAFKA_TOPIC": "\u00e4"}, "`source.topics.0`: expected the name of a topic"),
    ],
)
def test_what_a_person_must_fill_in_is_said_by_its_key(tool: str, more: dict[str, str], problem: str) -> None:
    [archive] = made_from(tool, more).archives
    assert archive.problems[0].startswith(problem)
    assert archive.problems[1:] == ()


def test_transforms_of_a_lenses_connector_become_steps_too() -> None:
    transforms = {
        "transforms": "m,h",
        "transforms.m.type": f"{CONNECT}.MaskField$Value",
        "transforms.m.fields": "card",
        "transforms.h.type": "io.lenses.connect.smt.header.InsertRecordTimestampHeaders",
    }
    for form, expected in (
        ("AVRO", {"steps": [{"mask": ["value.card"]}]}),
        ("TEXT", {"steps": [{"mask": ["value.card"]}]}),
    ):
        result = made_from("lenses", AVRO | transforms | {"connect.s3.kcql": f"{SELECT} STOREAS `{form}`"})
        assert yaml.safe_load(result.archives[0].yaml).get("transform") == expected
        # Text has no columns: the archive does not start until somebody decides how to decode it.
        hides = "transform.steps: mask value.card: the value has no decoded columns"
        assert [problem.startswith(hides) for problem in result.archives[0].problems] == [True] * (form == "TEXT")
        assert [
            note for note in result.notes if note.key == "transforms.h.type" and "does not use its headers" in note.text
        ]


def test_one_bad_statement_does_not_hide_the_others() -> None:
    result = made_from("lenses", {"connect.s3.kcql": f"{SELECT}; INSERT x; INSERT INTO `b SELECT 1; {SELECT}"})
    assert [archive.archive for archive in result.archives] == ["n-1", "n-4"]
    assert result.faults == (
        "file: KCQL, statement 2: expected INTO; found 'x'",
        "file: KCQL, statement 3: expected the end of the quote; found '`b SELECT 1'",
    )


def test_several_connectors_in_json() -> None:
    connectors = [{"name": name, "config": LEAST["confluent"] | {"name": name}, "tasks": []} for name in "ab"]
    for connectors_document in (connectors, {entry["name"]: {"info": entry, "status": {}} for entry in connectors}):
        assert [entry.archive for entry in archives_of(json.dumps(connectors_document), "file").archives] == ["a", "b"]
    result = archives_of(json.dumps([*connectors, {"name": "c", "config": {"x": "c"}}]), "file")
    assert len(result.archives) == 2
    assert result.faults[0].startswith("file, connector 3: the configuration of no known tool; found the keys name, x.")
    with pytest.raises(ConfigError, match="expected a list of connectors; found an empty list"):
        archives_of("[]", "file")


def test_connectors_of_other_tools_beside_ours_are_left_out_by_a_decision() -> None:
    ignored = [{"name": "c\x1b", "connector.class": "c"}, {"name": "d", "connector.class": "io.debezium.MySqlSource"}]
    result = archives_of(json.dumps([LEAST["confluent"] | JSON_PLAIN, *ignored]), "file")
    assert [archive.archive for archive in result.archives] == ["n"]
    assert not result.faults
    texts = [
        f"left out: {name} is no sink that is understood" for name in (r"c\u001b (c)", "d (io.debezium.MySqlSource)")
    ]
    assert [note.text for note in result.undecided][-2:] == texts
    with pytest.raises(
        ConfigError, match=r"(?s)connector 1: .*no known tool.*connector 2: expected a connector that w"
    ):
        archives_of(json.dumps(ignored), "file")


@pytest.mark.parametrize(
    "text", ['{"name": "a", "x": {"topics": "t", "topics": "u"}}', '{"name": "a", "name": "a"}', "name: a\nname: a\n"]
)
def test_a_key_that_is_there_twice_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"file\.yaml: .*key `(topics|name)` is given twice"):
        archives_of(text, "file.yaml")


def test_a_predicate_refers_to_the_transform_that_has_it() -> None:
    more = {"predicates": "p,q", "predicates.p.type": f"{CONNECT}.predicates.TopicNameMatches"}
    more |= {"predicates.p.pattern": "a.*", "predicates.q.type": "com.acme.Other"}
    _, notes = transformed(more, m="MaskField$Value fields=a predicate=p", f="Filter predicate=q")
    assert [notes[key].text for key in ("predicates.p.type", "predicates.p.pattern", "predicates.q.type")] == [
        "see transforms.m.type", "see transforms.m.type", "see transforms.f.type",
    ]  # fmt: skip
    assert transformed(more, f="Filter predicate=q")[1]["predicates.p.type"].text == "no effect: no transform has it"


@pytest.mark.parametrize(
    ("form", "codecs", "expected"),
    [
        ("PARQUET", "parquet.codec=gzip", "gzip"),
        ("PARQUET", "compression.codec=PARQUET - snappy,parquet.codec=gzip", "snappy"),
        ("JSON", "parquet.codec=snappy,s3.compression.type=gzip", "gzip"),
        ("JSON", "parquet.codec=snappy", "none"),
        ("AVRO", "avro.codec=deflate", "deflate"),
    ],
)
def test_the_codec_of_confluent_cloud_is_that_of_its_format(form: str, codecs: str, expected: str) -> None:
    more = dict(pair.split("=") for pair in codecs.split(","))
    result = made_from("cloud", {"input.data.format": "AVRO", "output.data.format": form} | more)
    assert yaml.safe_load(result.archives[0].yaml)["store"]["codec"] == expected
    texts = {note.key: note.text for note in result.notes}
    assert all(not texts[key].startswith("no effect") for key, codec in more.items() if codec.endswith(expected))
    assert f"# - {codecs.partition(',')[0]}: " in result.archives[0].yaml


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"file.name.template": "{{topic}}/{{start_offset}}"}, "no effect: the objects' names have no time"),
        ({"aws.s3.prefix": "x/"}, "no effect: the objects' names have no time"),
        ({"aws.s3.prefix": "x/{{timestamp:unit=yyyy}}/"}, "store.layout.timezone"),
        ({"file.name.template": "{{timestamp:unit=yyyy}}/{{topic}}-{{partition}}-{{start_offset}}",
          "file.name.timestamp.timezone": "UTC"}, "no effect beside file.name.timestamp.timezone"),
    ],
)  # fmt: skip
def test_aiven_s_older_zone_says_where_it_counts(more: dict[str, str], text: str) -> None:
    result = made_from("aiven", {"timestamp.timezone": "Europe/Berlin"} | more)
    assert [note.text for note in result.notes if note.key == "timestamp.timezone"] == [text]


# What a person may write, and what nobody should.
ODD = st.sampled_from(
    ["", "x", "-1", "0", "1", "1e9", "true", "a,b", "a.b", "a b", "${env:X}", "${X", "{", "'", "`", "\\", "*", "http://h",
     f"{PARTITIONER}.FieldPartitioner", f"{PARTITIONER}.TimeBasedPartitioner", "RecordField", "Record",
     *AVRO.values(), *JSON.values(),
     *(f"{FORMAT}.{name}Format" for name in ("bytearray.ByteArray", "parquet.Parquet"))]
) | st.text(st.characters(codec="utf-8"), max_size=12)  # fmt: skip
WORDS = f"""
{SELECT} PARTITIONBY _key _key.x _value.a _date.uuuu _date._ _topic , ; ( ) = . ` ' 0 true
STOREAS BYTES PARQUET TEXT CSV PROPERTIES 'store.envelope' WITH_FLUSH_COUNT
"""
KCQL = st.lists(st.sampled_from(WORDS.split()), max_size=10).map(lambda words: f"{SELECT} {' '.join(words)}")
KEY_OF_OURS = re.compile(r"\b(archive|schedule|source|timestamp|transform|store|policies|schema_evolution)\b")


@pytest.mark.parametrize("tool", TOOLS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_the_file_has_the_yaml_is_valid_or_its_keys_are_named(tool: str, data: st.DataObject) -> None:
    more = data.draw(st.dictionaries(st.sampled_from(KEYS[tool]), ODD, max_size=8))
    if tool == "lenses":
        more["connect.s3.kcql"] = data.draw(KCQL)
    text = text_of(tool, LEAST[tool] | more) if tool == "kafkatos3" else json.dumps(LEAST[tool] | more)
    try:
        result = archives_of(text, "file", tool)
    except ConfigError as error:
        assert str(error).startswith("file: ")  # noqa: PT017 - it need not be raised
        return
    for archive in result.archives:
        assert yaml.compose(archive.yaml)
        assert all(KEY_OF_OURS.search(problem) for problem in archive.problems), archive.problems


def test_comments_show_no_secret() -> None:
    values = {"a.password": "hunter2", "url": "http://u:hunter2@host/x?token=hunter2", "plain": "x  y?#"}
    values |= {"at": "u:hunter2@host?x"}
    keys = Keys(values)
    assert [keys.shown(key) for key in values] == ["a.password=…", "url=…", "plain=x y?#", "at=host"]


def test_no_secret_of_a_transform_or_of_the_store_is_in_a_note() -> None:
    text = """name=s3
connector.class=io.confluent.connect.s3.S3SinkConnector
topics=orders
s3.bucket.name=lake
format.class=io.confluent.connect.s3.format.json.JsonFormat
value.converter=org.apache.kafka.connect.json.JsonConverter
flush.size=1000
s3.sse.customer.key=LEAK1
transforms=enc,v
transforms.enc.type=com.github.hpgrahsl.kafka.connect.transforms.kryptonite.CipherField$Value
transforms.enc.cipher_data_keys=[{"material": {"keyData": {"value": "LEAK2"}}}]
transforms.enc.anything=LEAK3
transforms.v.type=com.example.Masks
transforms.v.vault_pass=LEAK4
predicates=p
predicates.p.type=com.example.Knows
predicates.p.thing=LEAK5
"""
    result = archives_of(text, "s3.properties", None, None)
    assert "LEAK" not in str(result)
    assert "transforms.enc.anything=…" in result.archives[0].yaml

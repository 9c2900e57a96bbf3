"""`airflow archive import`: what it prints, and where."""

from pathlib import Path

import pytest
import yaml

from tests.dags.conftest import Call

pytestmark = pytest.mark.dags

# With a layout of our own: nothing of it waits for another part of this release.
KAFKATOS3 = """
[consumer]
kafka_consumer_group = orders
topic_whitelist = orders
[s3]
s3_bucket_name = bucket
s3_access_key = AKIDEXAMPLE
s3_secret_key = hunter2
colour = red
"""
STATEMENTS = """name=n
topics=a,b
connect.s3.kcql=INSERT INTO x SELECT * FROM a; INSERT INTO x SELECT * FROM b
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    config_file = tmp_path / "kafkatos3.cfg"
    config_file.write_text(KAFKATOS3)
    return config_file


def test_the_yaml_goes_to_stdout_and_what_needs_a_look_to_stderr(call: Call, file: Path) -> None:
    shown = call("import", str(file), "--accept", code=None)
    content = yaml.safe_load(shown.out)
    assert (content["archive"], content["source"]["start"]) == ("orders", "group:orders")
    assert "# - s3.colour=red: kafkatos3 documents no such key" in shown.lines
    assert "hunter2" not in shown.out + shown.err
    assert "keys or remarks need a look" in shown.err


def test_as_json_with_every_note(call: Call, file: Path) -> None:
    result = call("import", str(file), "-o", "json", "--accept", code=None).json
    assert result["tool"] == "kafkatos3"
    assert [archive["archive"] for archive in result["archives"]] == ["orders"]
    assert {"kind": "kept", "key": "consumer.topic_whitelist", "text": "source.topics"} in result["notes"]
    assert {note["key"] for note in result["notes"] if note["kind"] == "unknown"} == {"s3.colour"}


CONNECTOR = """{"name": "n", "connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "t",
"s3.bucket.name": "b", "flush.size": "100000", "format.class": "io.confluent.connect.s3.format.avro.AvroFormat"}"""
WORKER = (
    "CONNECT_VALUE_CONVERTER=io.confluent.connect.avro.AvroConverter\nCONNECT_KEY_CONVERTER=x\nCONNECT_GROUP_ID=c\n"
)


def test_what_is_not_known_ends_with_an_error_until_a_person_accepts_it(call: Call, tmp_path: Path) -> None:
    source, folder, worker = tmp_path / "sink.json", tmp_path / "archives", tmp_path / "worker.env"
    source.write_text(CONNECTOR)
    worker.write_text(WORKER)
    folder.mkdir()
    shown = call("import", str(source), code=1)
    assert "--accept takes the YAML as it is):\nthe file has no value.converter" in shown.err
    assert yaml.safe_load(shown.out)["archive"] == "n"
    # Airflow would read it.
    assert "Nothing is written" in call("import", str(source), "--output-folder", str(folder), code=1).err
    assert list(folder.iterdir()) == []
    call("import", str(source), "--output-folder", str(folder), "--accept", code=None)
    assert [file.name for file in folder.iterdir()] == ["n.yaml"]
    shown = call("import", str(source), "--worker", str(worker), code=None)
    assert yaml.safe_load(shown.out)["source"]["value"] == {"decode": "avro"}
    source.write_text(f"[{CONNECTOR}, {CONNECTOR}]")
    assert (
        "is the group of one connector, and the file has 2" in call("import", str(source), "--group", "g", code=1).err
    )
    assert "two connectors become the archive n" in call("import", str(source), "--accept", code=1).err


def test_several_archives_are_written_into_a_folder_and_none_is_overwritten(call: Call, tmp_path: Path) -> None:
    source, folder = tmp_path / "sink.properties", tmp_path / "archives"
    source.write_text(STATEMENTS)
    folder.mkdir()
    shown = call("import", str(source), code=None)
    assert [content["archive"] for content in yaml.safe_load_all(shown.out)] == ["n-1", "n-2"]
    assert "each needs a file of its own (--output-folder)" in shown.err
    shown = call("import", str(source), "--accept", "--output-folder", str(folder), code=None)
    assert shown.out == ""
    assert sorted(file.name for file in folder.iterdir()) == ["n-1.yaml", "n-2.yaml"]
    shown = call("import", str(source), "--accept", "--output-folder", str(folder), code=1)
    assert "n-1.yaml: cannot be written: File exists" in shown.err


def test_a_group_and_a_tool_may_be_said(call: Call, file: Path) -> None:
    result = call("import", str(file), "--from", "kafkatos3", "--group", "g2", "--accept", code=None)
    assert yaml.safe_load(result.out)["source"]["start"] == "group:g2"
    assert "KCQL: expected INSERT INTO" in call("import", str(file), "--from", "lenses", code=1).err


def test_a_file_that_is_not_there_or_of_no_tool_is_one_sentence(call: Call, tmp_path: Path) -> None:
    missing = tmp_path / "none"
    assert call("import", str(missing), code=1).err == f"{missing}: cannot be read: No such file or directory\n"
    other = tmp_path / "other.json"
    other.write_text('{"a": 1}')
    assert "the configuration of no known tool; found the keys a" in call("import", str(other), code=1).err


def test_a_yaml_that_is_not_valid_is_told_with_the_reason(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "kafkatos3.cfg"
    file.write_text(KAFKATOS3.replace("topic_whitelist = orders\n", ""))
    shown = call("import", str(file), code=1)
    assert "The YAML is not valid yet:\norders: `source.topics`: expected" in shown.err


def test_what_can_be_made_is_printed_and_the_rest_is_an_error(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "sink.properties"
    file.write_text(
        STATEMENTS.replace("; ", "; SELECT 1; ").replace("INTO x SELECT * FROM b", "INTO ${file:/a:b} SELECT * FROM b")
    )
    shown = call("import", str(file), code=1)
    assert [content["archive"] for content in yaml.safe_load_all(shown.out)] == ["n-1", "n-3"]
    assert "The YAML is not valid yet:\nn-3: `store.url`: ${file:/a:b} is not replaced here" in shown.err
    assert f"No archive is made of these:\n{file}: KCQL, statement 2: expected INSERT; found 'SELECT'" in shown.err
    result = call("import", str(file), "-o", "json", code=1).json
    assert result["faults"] == [f"{file}: KCQL, statement 2: expected INSERT; found 'SELECT'"]

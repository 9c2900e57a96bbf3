"""The settings that Spark gets of an archive: what its UI hides, and a file that Java reads as it was meant."""

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.orchestration.submit.spark_conf import properties_text, spark_conf
from scripts.stack.java import find_java

pytestmark = pytest.mark.unit
NAMES = st.from_regex(r"spark\.(hadoop\.|metrics\.conf\.)?[a-z*][a-zA-Z0-9._/*$+-]{0,20}", fullmatch=True)


def hides(settings: dict[str, str], name: str) -> bool:
    """Return True if Spark hides a property of this name: it looks for the expression anywhere in it."""
    return re.search(spark_conf(settings)["spark.redaction.regex"], name) is not None


def test_settings_are_what_spark_calls_them_and_our_defaults_come_first() -> None:
    conf = spark_conf({"spark.speculation": False, "spark.task.cpus": 2, "spark.memory.fraction": 0.5})
    assert (conf["spark.speculation"], conf["spark.task.cpus"], conf["spark.memory.fraction"]) == (
        "false",
        "2",
        "0.5",
    )
    assert conf["spark.log.level"] == "WARN"
    assert spark_conf({"spark.log.level": "INFO"})["spark.log.level"] == "INFO"


@given(st.lists(NAMES, min_size=1))
def test_spark_hides_what_airflow_hides(names: list[str]) -> None:
    settings = dict.fromkeys(names, "x")
    for name in names:
        assert hides(settings, name)
        assert hides(settings, re.sub(r"^spark\.(hadoop\.|metrics\.conf\.)?", "", name))


@pytest.mark.parametrize("settings", [{}, {"spark.x": "y"}])
def test_spark_shows_what_is_harmless_and_what_others_have_told_it(settings: dict[str, str]) -> None:
    assert not hides({**settings, "spark.executor.memory": "2g"}, "spark.executor.memory")
    assert not hides(settings, "spark.executor.heartbeatInterval")
    assert hides(settings, "spark.hadoop.fs.s3a.secret.key")
    assert hides(settings, "fs.s3a.access.key")
    assert hides(settings, "spark.ssl.keyStorePassword")


def test_an_expression_of_the_archive_itself_counts_too() -> None:
    settings = {"spark.redaction.regex": "heartbeat"}
    assert hides(settings, "spark.executor.heartbeatInterval")
    assert hides(settings, "spark.hadoop.fs.s3a.secret.key")


def test_java_reads_the_properties_as_they_were_written(tmp_path: Path) -> None:
    written = {
        "spark.app.id": "{{APP_ID}}",
        "odd: = #!name": ' = : #! back\\slash "quote" ',
        "lines": "first\nsecond\r\n\tthird\f",
        "plenty": "é ü \U0001f511 \ud800 ''",
        "spark.redaction.regex": spark_conf({"spark.a.b": ""})["spark.redaction.regex"],
        "empty": "",
    }
    file = tmp_path / "spark.properties"
    file.write_text(properties_text(written), encoding="ascii")
    program = tmp_path / "Show.java"
    program.write_text(
        "import java.io.*; import java.util.*; class Show { public static void main(String[] a) throws Exception {"
        ' Properties p = new Properties(); p.load(new InputStreamReader(new FileInputStream(a[0]), "UTF-8"));'
        " for (String name : p.stringPropertyNames()) {"
        " for (String text : List.of(name, p.getProperty(name))) {"
        ' for (char c : text.toCharArray()) System.out.printf("%04x", (int) c); System.out.print(" "); }'
        " System.out.println(); } } }"
    )
    shown = subprocess.run([find_java().executable, program, file], capture_output=True, text=True, check=True).stdout
    texts = [
        [bytes.fromhex(t).decode("utf-16-be", "surrogatepass") for t in line.split(" ")[:2]]
        for line in shown.splitlines()
    ]
    # It drops the white space before a value.
    assert dict(texts) == {name: value.lstrip(" ") for name, value in written.items()}

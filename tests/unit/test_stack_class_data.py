"""The stack's class-data archive: one for each Java and set of jars; that it cannot be made is no error."""

from pathlib import Path

import pytest

from scripts.stack import class_data as stack
from scripts.stack.java import Java
from scripts.stack.spark_conf import driver_settings

pytestmark = pytest.mark.unit


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    """A Java, a Spark and a Python of which only the files are there; Python writes `made`, and fails without it."""
    for name in ("java/lib/server/libjvm.so", "spark/jars/a.jar"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(name)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho tried >> {tmp_path}/tries\ncp {tmp_path}/made "$3"\n')
    python.chmod(0o755)
    monkeypatch.setattr(stack, "BIN", tmp_path)
    monkeypatch.setattr(stack, "SPARK_HOME", tmp_path / "spark")
    monkeypatch.setattr(stack, "DIRECTORY", tmp_path / "class-data")
    return Java(tmp_path / "java", 17)


def test_another_one_takes_its_place_for_other_jars(java: Java, tmp_path: Path) -> None:
    (tmp_path / "made").write_text("classes")
    assert stack.class_data(java) is None
    stack.make_class_data(java, tmp_path / "log")
    stack.make_class_data(java, tmp_path / "log")
    first = stack.class_data(java)
    assert first is not None
    (tmp_path / "spark" / "jars" / "b.jar").write_text("b")
    assert stack.class_data(java) is None
    stack.make_class_data(java, tmp_path / "log")
    assert stack.class_data(java) not in (None, first)
    assert not first.exists()
    assert (tmp_path / "tries").read_text() == "tried\n" * 2


def test_a_failure_is_told_once(java: Java, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stack.make_class_data(java, tmp_path / "log")
    stack.make_class_data(java, tmp_path / "log")
    assert capsys.readouterr().out == (
        f"Could not make a class-data archive, so Spark jobs start a little slower; see {tmp_path}/log\n"
    )
    assert "cp: " in (tmp_path / "log").read_text()
    assert stack.class_data(java) is None


def test_the_drivers_jvm_is_told_of_it_beside_its_other_options() -> None:
    settings = driver_settings("-XX:-UsePerfData", Path("/a b/c.jsa"))
    assert settings["spark.driver.extraClassPath"].endswith("/pyspark/jars/*")
    assert settings["spark.driver.defaultJavaOptions"] == (
        '-XX:-UsePerfData "-XX:SharedArchiveFile=/a b/c.jsa" -Xlog:cds*=off'
    )
    assert driver_settings("-XX:-UsePerfData", None) == {"spark.driver.defaultJavaOptions": "-XX:-UsePerfData"}

"""A class-data archive: made once, used where it fits, and not seen where it does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.stack.java import find_java
from scripts.stack.paths import BIN, SPARK_HOME

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SHARED = "org.apache.spark.deploy.SparkSubmit source: shared objects file (top)"


def environment(directory: Path) -> dict[str, str]:
    """Spark with a directory of settings that is not empty: what Java refuses in front of the jars."""
    conf = directory / "conf"
    conf.mkdir(exist_ok=True)
    (conf / "spark-defaults.conf").write_text("spark.ui.enabled false\n")
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    python = {"PYSPARK_PYTHON": str(BIN / "python"), "PYSPARK_DRIVER_PYTHON": str(BIN / "python")}
    java = {"JAVA_HOME": str(find_java().home), "SPARK_LAUNCHER_OPTS": "-XX:-UsePerfData"}
    return {**own, **python, **java, "SPARK_HOME": str(SPARK_HOME), "SPARK_CONF_DIR": str(conf)}


def make(file: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kafka_archiver.spark.class_data", str(file)],
        env={**environment(file.parent), **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def submit(directory: Path, conf: dict[str, str]) -> tuple[str, str]:
    """Return what a job without work prints, and where its JVM had its classes from."""
    program, log = directory / "job.py", directory / "classes.log"
    program.write_text("print('ran')\n")
    java = f'"-Djava.io.tmpdir={directory}" "-Xlog:class+load:file={log}"'
    conf = {**conf, "spark.driver.extraJavaOptions": java}
    options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    ran = subprocess.run(
        [SPARK_HOME / "bin" / "spark-submit", "--master", "local[1]", *options, program],
        env=environment(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return ran.stdout, log.read_text()


def test_a_job_has_its_classes_from_the_archive_and_starts_silently_when_it_does_not_fit(tmp_path: Path) -> None:
    class_archive = make(tmp_path / "a b.jsa")
    assert class_archive.returncode == 0, class_archive.stderr
    conf = dict(line.split(" ", 1) for line in class_archive.stdout.splitlines() if line.startswith("spark."))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b.jsa", "conf"]

    output, classes = submit(tmp_path, conf)
    assert "ran\n" in output
    assert SHARED in classes

    # As if the jars were others: the order of the class path is not what it was made with.
    del conf["spark.driver.extraClassPath"]
    output, classes = submit(tmp_path, conf)
    assert "ran\n" in output
    assert SHARED not in classes
    assert "[cds" not in output
    assert "archive" not in output


def test_without_a_java_that_works_nothing_is_made(tmp_path: Path) -> None:
    class_archive = make(tmp_path / "x.jsa", JAVA_HOME=str(tmp_path))
    assert class_archive.returncode == 1
    assert "made no class-data archive" in class_archive.stderr
    assert f"{tmp_path}/bin/java: No such file or directory" in class_archive.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["conf"]

"""Fetches the jars of the Kafka broker and of Spark's Kafka source, with the Ivy that pyspark ships."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from scripts.stack.errors import StackError
from scripts.stack.java import Java
from scripts.stack.paths import BROKER_JARS, LOCAL, SPARK_HOME

MODULES = Path(__file__).with_name("ivy.xml")
SETTINGS = Path(__file__).with_name("ivysettings.xml")


def fetch_jars(java: Java, log: Path) -> None:
    """Fills .local/jars, unless it has the jars of this ivy.xml already.

    :raises StackError: a download failed; the message has the end of the log.
    """
    target = BROKER_JARS.parent
    stamp = target / "ivy.xml"
    if stamp.exists() and stamp.read_bytes() == MODULES.read_bytes():
        return
    retrieve(java, MODULES, SETTINGS, ["jar", "bundle"], target, log)
    shutil.copy(MODULES, stamp)


def retrieve(java: Java, modules: Path, settings: Path, types: list[str], target: Path, log: Path) -> None:
    """Fills a new folder with the artifacts of an ivy.xml that have one of these types.

    :raises StackError: a download failed; the message has the end of the log.
    """
    ivy = next((SPARK_HOME / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        raise StackError(f"no ivy-*.jar in {SPARK_HOME / 'jars'}: pyspark is incomplete; remove .venv and try again")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    jvm = [str(java.executable), "-XX:-UsePerfData", f"-Djava.io.tmpdir={LOCAL}", "-jar", str(ivy)]
    arguments = ["-settings", str(settings), "-ivy", str(modules), "-types", *types]
    layout = ["-retrieve", "[conf]/[artifact]-[revision].[ext]"]
    with log.open("ab") as output:
        fetched = subprocess.run([*jvm, *arguments, *layout], cwd=target, stdout=output, stderr=output, check=False)
    if fetched.returncode != 0:
        end = "\n  ".join(log.read_text(errors="replace").splitlines()[-20:])
        raise StackError(f"could not download the jars of {modules.name}; the end of {log}:\n  {end}")

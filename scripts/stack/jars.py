"""Fetches the jars of the Kafka broker and of Spark's Kafka source, with the Ivy that pyspark ships."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from scripts.stack.errors import StackError
from scripts.stack.java import Java
from scripts.stack.paths import BROKER_JARS, LOCAL, SPARK_HOME

KAFKA = "4.1.1"
SPARK = "4.2.0"

MODULES = f"""\
<ivy-module version="2.0">
  <info organisation="kafka-archiver" module="jars"/>
  <configurations><conf name="broker"/><conf name="spark"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA}" conf="broker->default"/>
    <!-- Without a logger behind slf4j, a broker that does not start does not say why. -->
    <dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="2.24.3" conf="broker->default"/>
    <dependency org="org.apache.spark" name="spark-sql-kafka-0-10_2.13" rev="{SPARK}" conf="spark->default"/>
    <!-- pyspark has these. -->
    <exclude org="org.apache.hadoop" conf="spark"/>
    <exclude org="org.scala-lang" conf="spark"/>
    <exclude org="org.scala-lang.modules" conf="spark"/>
    <exclude org="org.slf4j" conf="spark"/>
    <exclude org="org.xerial.snappy" conf="spark"/>
    <exclude org="at.yawk.lz4" conf="spark"/>
    <exclude org="com.google.code.findbugs" conf="spark"/>
    <exclude org="org.apache.spark" module="spark-tags_2.13" conf="spark"/>
    <!-- Not every mirror has the later ones of this one; 4.0.0 runs with Spark 4.2. -->
    <override org="org.apache.spark" module="spark-token-provider-kafka-0-10_2.13" rev="4.0.0"/>
  </dependencies>
</ivy-module>
"""

# Ivy's own defaults, made safe for two checkouts that fetch into the shared download cache at the same time.
SETTINGS = """\
<ivysettings>
  <include url="${ivy.default.settings.dir}/ivysettings.xml"/>
  <caches lockStrategy="artifact-lock-nio"/>
</ivysettings>
"""

STAMP = hashlib.sha256(MODULES.encode()).hexdigest()


def fetch_jars(java: Java, log: Path) -> None:
    """Fills .local/jars; at once when it holds what MODULES asks for.

    :raises StackError: a jar could not be had; with the end of the log.
    """
    target = BROKER_JARS.parent
    stamp = target / "stamp"
    if stamp.exists() and stamp.read_text() == STAMP:
        return
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / "ivy.xml").write_text(MODULES)
    (target / "ivysettings.xml").write_text(SETTINGS)
    ivy = next((SPARK_HOME / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        raise StackError(f"no ivy-*.jar in {SPARK_HOME / 'jars'}: pyspark is not whole; remove .venv and try again")
    arguments = ["-settings", "ivysettings.xml", "-ivy", "ivy.xml", "-types", "jar", "bundle"]
    arguments += ["-retrieve", "[conf]/[artifact]-[revision].[ext]"]
    jvm = [str(java.executable), "-XX:-UsePerfData", f"-Djava.io.tmpdir={LOCAL}"]
    with log.open("ab") as output:
        fetched = subprocess.run(
            [*jvm, "-jar", str(ivy), *arguments], cwd=target, stdout=output, stderr=output, check=False
        )
    if fetched.returncode != 0:
        end = "\n  ".join(log.read_text(errors="replace").splitlines()[-20:])
        raise StackError(f"the jars of Kafka and Spark could not be fetched; the end of {log}:\n  {end}")
    stamp.write_text(STAMP)

"""Spark's classes as a class-data archive of Java, which saves each job's JVM the work of reading and checking them.

`python -m kafka_archiver.spark.class_data FILE` makes one (65 MB) for this machine's Java and Spark, and prints the
settings with which spark-submit uses it. Java looks at it only while Java itself and the jars are those it was made
with; else it starts as without.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from kafka_archiver.errors import PermanentError

# Of what the native reader makes Spark do, a task without work.
_JOB = """from pyspark import SparkContext
SparkContext.getOrCreate().parallelize([1], 1).mapPartitions(list).collect()
"""
# Java warns on standard output, of a stale archive at each start.
_SILENT = "-Xlog:cds*=off"
# And without files in /tmp.
_QUICK = "-XX:-UsePerfData -XX:TieredStopAtLevel=1"


def driver_class_path(spark: Path) -> str:
    """What `spark.driver.extraClassPath` has to begin with.

    Java takes no class-data archive while a directory with files comes before the last jar with a class in it, and
    Spark's directory of settings comes before its jars. So they are named before it.
    """
    return f"{spark}/jars/*"


def java_options(file: Path) -> str:
    """What `spark.driver.defaultJavaOptions` has to hold."""
    return f'"-XX:SharedArchiveFile={file}" {_SILENT}'


def make(file: Path, spark: Path) -> None:
    """Write the archive, by a job without work in a JVM of its own. An older one is replaced when all has worked.

    :param spark: where Spark is installed (SPARK_HOME).
    :raises PermanentError: it did not work; with the end of what Spark said.
    """
    with tempfile.TemporaryDirectory(dir=file.parent) as name:
        folder = Path(name)
        made, program, settings = folder / "made.jsa", folder / "job.py", folder / "conf"
        program.write_text(_JOB)
        # Without the settings of others: they may name a class path or an archive.
        settings.mkdir()
        environment = {
            **os.environ,
            "SPARK_HOME": str(spark),
            "SPARK_CONF_DIR": str(settings),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "TMPDIR": name,
            "SPARK_LAUNCHER_OPTS": _QUICK,
        }
        quick = f'{_QUICK} "-Djava.io.tmpdir={name}" {_SILENT}'
        local = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.local.dir": name}
        conf = {**local, "spark.driver.extraClassPath": driver_class_path(spark)}
        command = [str(spark / "bin" / "spark-submit"), "--master", "local[1]"]
        command += [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        # Without a proof that Java takes it, a damaged one would end every later JVM.
        for options, arguments in (
            (f'"-XX:ArchiveClassesAtExit={made}"', [str(program)]),
            (f'"-XX:SharedArchiveFile={made}" -Xshare:on', ["--version"]),
        ):
            done = subprocess.run(
                [*command, *arguments],
                env={**environment, "SPARK_SUBMIT_OPTS": f"{quick} {options}"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            if done.returncode != 0 or not made.exists():
                end = "\n  ".join(done.stdout.decode(errors="replace").splitlines()[-20:])
                raise PermanentError(f"{shlex.join([*command, *arguments])} made no class-data archive:\n  {end}")
        made.replace(file)


def installed_spark() -> Path:
    """SPARK_HOME, else the one that came with PySpark."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise PermanentError("no Spark was found: install PySpark (pip install pyspark) or set SPARK_HOME")
    return Path(found.origin).parent


def main(arguments: Sequence[str]) -> int:
    """Make one, and say how to use it. Returns the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m kafka_archiver.spark.class_data FILE\n")
        return 2
    file = Path(arguments[0]).absolute()
    try:
        spark = installed_spark()
        make(file, spark)
    except (PermanentError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write(
        f"{file} is made. In spark-defaults.conf, or in an archive's spark.conf:\n"
        f"spark.driver.extraClassPath {driver_class_path(spark)}\n"
        f"spark.driver.defaultJavaOptions {java_options(file)}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

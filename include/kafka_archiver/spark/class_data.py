"""A Java class-data archive of Spark's classes, so that each job's JVM does not have to read and verify them.

`python -m kafka_archiver.spark.class_data FILE` makes an archive (65 MB) for this machine's Java and Spark, and prints
the settings for spark-submit. Java ignores the archive if Java or the jars have changed since.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from kafka_archiver.messages.errors import PermanentError

# The Spark job of the native reader, with an empty task.
_JOB = """from pyspark import SparkContext
SparkContext.getOrCreate().parallelize([1], 1).mapPartitions(list).collect()
"""
# Java prints warnings on standard output, for a stale archive at each start.
_SILENT = "-Xlog:cds*=off"
# Also without files in /tmp.
_QUICK = "-XX:-UsePerfData -XX:TieredStopAtLevel=1"


def driver_class_path(spark: Path) -> str:
    """The text that `spark.driver.extraClassPath` has to begin with.

    Java uses no class-data archive if a directory with files is before the jars in the class path. Spark puts its conf
    directory there, so `extraClassPath` names the jars before it.
    """
    return f"{spark}/jars/*"


def java_options(file: Path) -> str:
    """The options that `spark.driver.defaultJavaOptions` has to have."""
    return f'"-XX:SharedArchiveFile={file}" {_SILENT}'


def make(file: Path, spark: Path) -> None:
    """Write the archive with an empty job in a new JVM. Replaces an older archive at the end.

    :param spark: Spark's directory (SPARK_HOME).
    :raises PermanentError: a command failed; the message has the end of its output.
    """
    with tempfile.TemporaryDirectory(dir=file.parent) as name:
        folder = Path(name)
        archive_file, program, settings = folder / "made.jsa", folder / "job.py", folder / "conf"
        program.write_text(_JOB)
        # An empty conf directory: the usual settings may have a class path or an archive.
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
        # The second command proves that Java accepts the archive: a damaged one would end every later JVM.
        for options, arguments in (
            (f'"-XX:ArchiveClassesAtExit={archive_file}"', [str(program)]),
            (f'"-XX:SharedArchiveFile={archive_file}" -Xshare:on', ["--version"]),
        ):
            done = subprocess.run(
                [*command, *arguments],
                env={**environment, "SPARK_SUBMIT_OPTS": f"{quick} {options}"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            if done.returncode != 0 or not archive_file.exists():
                end = "\n  ".join(done.stdout.decode(errors="replace").splitlines()[-20:])
                raise PermanentError(f"{shlex.join([*command, *arguments])} made no class-data archive:\n  {end}")
        archive_file.replace(file)


def installed_spark() -> Path:
    """SPARK_HOME, else the directory of PySpark."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise PermanentError("Spark not found: install PySpark (pip install pyspark) or set SPARK_HOME")
    return Path(spec.origin).parent


def main(arguments: Sequence[str]) -> int:
    """Make an archive, and print how to use it. Returns the exit code."""
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
        f"Wrote {file}. Set in spark-defaults.conf, or in an archive's spark.conf:\n"
        f"spark.driver.extraClassPath {driver_class_path(spark)}\n"
        f"spark.driver.defaultJavaOptions {java_options(file)}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""PySpark as it is installed, instead of the zip of it that spark-submit puts first on Python's path."""

from collections.abc import Sequence
from pathlib import Path


def unpacked(path: Sequence[str], spark: str) -> list[str]:
    """The path with the folder of the same PySpark in place of its zip, from which Python compiles all anew: half a
    CPU second each start. Unchanged where there is no such folder.

    :param spark: where Spark is installed (SPARK_HOME): by pip, or from a download.
    """
    home = Path(spark)
    found = next((f for f in (home.parent, home / "python") if (f / "pyspark" / "core" / "context.py").exists()), None)
    packed = str(home / "python" / "lib" / "pyspark.zip")
    return [str(found) if found and entry == packed else entry for entry in path]

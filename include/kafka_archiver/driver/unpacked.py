"""PySpark as it is installed, instead of the zip of it that spark-submit puts first on Python's path."""

from collections.abc import Sequence
from pathlib import Path


def unpacked(path: Sequence[str], spark: str) -> list[str]:
    """The path without that zip where the same PySpark is in a folder, else as it was: what comes from a zip Python
    compiles anew, half a CPU second each start.

    :param spark: where Spark is installed (SPARK_HOME): by pip, or from a download.
    """
    home = Path(spark)
    packed = str(home / "python" / "lib" / "pyspark.zip")
    if str(home.parent) in path and _is_pyspark(home):
        return [entry for entry in path if entry != packed]
    # Nothing but Spark's is in a download's folder. Of another environment's packages only PySpark may come first.
    if _is_pyspark(home / "python" / "pyspark"):
        return [str(home / "python") if entry == packed else entry for entry in path]
    return list(path)


def _is_pyspark(folder: Path) -> bool:
    return (folder / "core" / "context.py").exists()

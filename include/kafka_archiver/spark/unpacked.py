"""Import PySpark from its installation instead of the zip that spark-submit puts first on Python's path."""

from collections.abc import Sequence
from pathlib import Path


def unpacked(path: Sequence[str], spark: str) -> list[str]:
    """The path without the zip if the same PySpark is installed in a folder, else unchanged.

    Python compiles modules of a zip at each start, which takes half a CPU second.

    :param spark: where Spark is installed (SPARK_HOME): by pip, or from a download.
    """
    home = Path(spark)
    packed = str(home / "python" / "lib" / "pyspark.zip")
    if str(home.parent) in path and _is_pyspark(home):
        return [entry for entry in path if entry != packed]
    # A download's folder has only Spark's packages. Never put another environment's site-packages first.
    if _is_pyspark(home / "python" / "pyspark"):
        return [str(home / "python") if entry == packed else entry for entry in path]
    return list(path)


def _is_pyspark(folder: Path) -> bool:
    return (folder / "core" / "context.py").exists()

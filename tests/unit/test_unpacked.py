"""PySpark from a folder instead of its zip, wherever Spark has both."""

from pathlib import Path

import pytest

from kafka_archiver.spark.unpacked import unpacked

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("home", "folder"), [("site-packages/pyspark", "site-packages"), ("spark", "spark/python")])
def test_the_folder_takes_the_place_of_the_zip(home: str, folder: str, tmp_path: Path) -> None:
    spark = tmp_path / home
    path = ["/job", str(spark / "python" / "lib" / "pyspark.zip"), str(spark / "python" / "lib" / "py4j.zip"), "/usr"]
    assert unpacked(path, str(spark)) == path
    context = tmp_path / folder / "pyspark" / "core" / "context.py"
    context.parent.mkdir(parents=True)
    context.touch()
    assert unpacked(path, str(spark)) == [path[0], str(tmp_path / folder), *path[2:]]


def test_without_spark_the_path_stays() -> None:
    assert unpacked(["/a", "/b"], "") == ["/a", "/b"]

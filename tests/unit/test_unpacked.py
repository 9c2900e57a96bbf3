"""PySpark from a folder instead of its zip, wherever Spark has both."""

from pathlib import Path

import pytest

from kafka_archiver.spark.unpacked import unpacked

pytestmark = pytest.mark.unit


def install(folder: Path) -> None:
    (folder / "core").mkdir(parents=True)
    (folder / "core" / "context.py").touch()


def test_a_downloads_folder_takes_the_place_of_its_zip(tmp_path: Path) -> None:
    spark = tmp_path / "spark"
    path = ["/job", str(spark / "python/lib/pyspark.zip"), str(spark / "python/lib/py4j.zip"), "/usr"]
    assert unpacked(path, str(spark)) == path
    install(spark / "python/pyspark")
    assert unpacked(path, str(spark)) == [path[0], str(spark / "python"), *path[2:]]


def test_where_pip_installed_it_the_zip_is_left_out_and_no_other_environment_comes_first(tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    spark = packages / "pyspark"
    install(spark)
    path = ["/job", str(spark / "python/lib/pyspark.zip"), "/usr", str(packages)]
    assert unpacked(path, str(spark)) == ["/job", "/usr", str(packages)]
    assert unpacked(path[:-1], str(spark)) == path[:-1]


def test_without_spark_the_path_stays() -> None:
    assert unpacked(["/a", "/b"], "") == ["/a", "/b"]

"""The libraries that the driver of a job does not import."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit
# The converters see each argument of a call to the JVM.
PROGRAM = """
import sys
from types import SimpleNamespace
from py4j.protocol import INPUT_CONVERTER
from kafka_archiver.spark import engine
before = list(map(type, INPUT_CONVERTER))


class Submitted(dict):
    def __init__(self):
        # As the first call to the JVM does.
        assert not any(converter.can_convert("text") for converter in INPUT_CONVERTER)

    setAll = setAppName = lambda self, _: self


engine.SparkConf = Submitted
engine.SparkContext = SimpleNamespace(_ensure_initialized=int, _active_spark_context=None, getOrCreate=dict)
engine.spark_context("orders")
print("pandas" in sys.modules)
engine._convert_numpy(sql=True)
engine._convert_numpy(sql=True)
assert list(map(type, INPUT_CONVERTER)) == before
assert not any(converter.can_convert("text") for converter in INPUT_CONVERTER)
print("pandas" in sys.modules)
"""


def test_only_a_job_with_sql_imports_pandas() -> None:
    answer = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["False", "True"]

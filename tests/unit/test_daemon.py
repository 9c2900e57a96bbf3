"""Spark's Python daemon for jobs on this machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_archiver.spark.daemon import BEFORE_FORK

pytestmark = pytest.mark.unit
_PROGRAM = """
import gc, os, sys
from kafka_archiver.spark.daemon import prepare
prepare()
assert gc.isenabled() and len(gc.get_objects()) < gc.get_freeze_count()
print(len(os.listdir("/proc/self/task")), sys.modules["pyspark"].__file__, *sys.modules)
"""


def test_the_daemon_imports_libraries_before_it_forks_and_has_a_single_thread_then() -> None:
    import pyspark

    home = Path(pyspark.__file__).parent
    packed = f"{home}/python/lib/pyspark.zip"
    environment = {**os.environ, "SPARK_HOME": str(home), "PYTHONPATH": f"{packed}:{os.environ.get('PYTHONPATH', '')}"}
    answer = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True)
    threads, place, *modules = answer.stdout.split()
    assert threads == "1"
    assert place == str(home / "__init__.py")
    assert set(BEFORE_FORK) <= {*modules}

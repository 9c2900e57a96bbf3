"""The modules that have to be installed where Spark runs are the package's dependencies without an extra."""

import json
import re
import subprocess
import sys
import tomllib

import pytest

from scripts.stack.paths import ROOT

pytestmark = pytest.mark.unit

# In an interpreter of its own: notes who imports what, then does what a task, or the job's driver, does.
PROGRAM = """
import builtins, dis, json, sys
ours, real = set(), builtins.__import__

def noting(name, globals=None, locals=None, fromlist=(), level=0):
    caller = sys._getframe(1)
    # What is written in C imports in the name of who called it.
    is_statement = caller.f_code.co_code[caller.f_lasti] == dis.opmap["IMPORT_NAME"]
    if level == 0 and is_statement and caller.f_globals.get("__name__", "").startswith("kafka_archiver."):
        ours.add(name.split(".")[0])
    return real(name, globals, locals, fromlist, level)

builtins.__import__ = noting
import kafka_archiver.spark.native, kafka_archiver.spark.sink
from kafka_archiver.records.formats import get_format, names
from kafka_archiver.records.formats.known_bytes import require_known_bytes
from kafka_archiver.model.plan import Settings
from kafka_archiver.store import open_store

open_store("s3://bucket/prefix", {"endpoint_url": "http://127.0.0.1:1", "region_name": "x"})
for name, which in [(name, which) for name in names() for which in get_format(name).known]:
    codec, content = which.split("-")
    require_known_bytes(Settings(format=name, codec=codec, content=content))
if sys.argv[1] == "driver":
    import kafka_archiver.driver.main, kafka_archiver.driver.archive, kafka_archiver.spark.engine
print(json.dumps([sorted(ours - set(sys.stdlib_module_names) - {"kafka_archiver"}), sorted(sys.modules)]))
"""
# Spark brings the first itself, boto3 and pydantic the others.
BROUGHT = {"pyspark", "py4j", "botocore", "urllib3", "pydantic_core"}


def imported(where: str) -> tuple[set[str], set[str]]:
    """Return our modules' imports there, and all that is loaded then."""
    command = [sys.executable, "-c", PROGRAM, where]
    run = subprocess.run(command, env={"PYTHONPATH": str(ROOT / "include")}, check=True, capture_output=True, text=True)
    own_modules, loaded = json.loads(run.stdout)
    return set(own_modules) - BROUGHT, set(loaded)


def required() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[>=<]", need)[0].replace("-", "_") for need in project["dependencies"]}


@pytest.mark.parametrize("where", ["executor", "driver"])
def test_what_is_imported_is_what_the_package_requires(where: str) -> None:
    own_modules, loaded = imported(where)
    assert own_modules == required()
    assert not loaded & {"yaml", "croniter", "fastavro", "airflow", "httpx", "rich"}


def test_planning_loads_neither_arrow_nor_what_writes() -> None:
    """A third of a CPU second, every hour, of an archive that may have nothing new."""
    program = (
        "import sys, kafka_archiver.work.plan; from kafka_archiver.records.formats import resolve; "
        "from kafka_archiver.model.plan import Settings; resolve(Settings(codec='')); print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "include")}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert not set(run.stdout.split()) & {"pyarrow", "numpy", "zstandard", "orjson", "fastavro"}

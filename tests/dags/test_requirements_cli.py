"""`airflow archive requirements`: what Spark's executors need, in the versions of this environment."""

import re
import sys
from importlib.metadata import version

import pytest

from kafka_archiver.orchestration.cli import requirements
from scripts.stack.paths import ROOT
from tests.dags.conftest import Call
from tests.unit.test_executor_imports import required

pytestmark = pytest.mark.dags
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE))


def test_it_lists_what_executors_need_with_the_locked_versions(call: Call) -> None:
    shown = call("requirements").out.splitlines()
    python = ".".join(map(str, sys.version_info[:2]))
    assert shown[0] == f"# For the executors of a Spark 4.2.0 with Python {python}, which brings pyspark itself."
    packages = dict(line.split("==") for line in shown[1:])
    assert {"fastavro", "ptars", "jsonschema-rs", "cryptography", "pandas"} < packages.keys()
    assert required() <= {n.replace("-", "_") for n in packages}
    assert packages.items() <= PINS.items()
    assert not [name for name in packages if "airflow" in name or "spark" in name or name == "kafka-archiver"]
    # Also what those need in turn.
    assert {"botocore", "pydantic-core"} < packages.keys()


def test_an_extra_that_is_not_installed_here_is_left_out_and_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    real = requirements._version
    monkeypatch.setattr(requirements, "_version", lambda name: None if name == "fastavro" else real(name))
    shown = call("requirements", "-o", "json")
    assert shown.json["left_out"] == ["avro"]
    assert "fastavro" not in shown.json["packages"]
    assert shown.json["packages"]["pyarrow"] == version("pyarrow")
    assert "the extra avro is not installed here" in call("requirements").err


def test_a_version_that_executors_cannot_use_is_left_out_and_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    # A plain Airflow of today brings pandas 3.
    real = requirements._version
    monkeypatch.setattr(requirements, "_version", lambda name: "3.1.1" if name == "pandas" else real(name))
    shown = call("requirements")
    assert "pandas" not in shown.out
    assert "pandas 3.1.1 is installed here, but executors need pandas<3: left out" in shown.err


def test_a_package_on_pythonpath_alone_does_not_say_what_it_needs(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "_version", lambda name: None)
    assert "pip install 'kafka-archiver[airflow]'" in call("requirements", code=1).err

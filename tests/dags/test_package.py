"""The zip that executors get."""

import os
import zipfile
from pathlib import Path

import pytest

import kafka_archiver
from kafka_archiver.orchestration.submit.package import build_package

pytestmark = pytest.mark.dags


def test_the_same_code_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "kafka_archiver"
    (source / "deep" / "__pycache__").mkdir(parents=True)
    for name in ("__init__.py", "b.py", "deep/__init__.py", "deep/a.py", "deep/__pycache__/a.cpython-311.pyc"):
        (source / name).write_text(f"# {name}\n")
    monkeypatch.setattr(kafka_archiver, "__file__", str(source / "__init__.py"))
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    before = build_package(first).read_bytes()
    os.utime(source / "b.py", (1, 1))
    (source / "b.py").chmod(0o755)
    assert build_package(second).read_bytes() == before
    assert zipfile.ZipFile(first / "kafka_archiver.zip").namelist() == [
        "kafka_archiver/__init__.py",
        "kafka_archiver/b.py",
        "kafka_archiver/deep/__init__.py",
        "kafka_archiver/deep/a.py",
    ]

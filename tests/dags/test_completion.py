"""A shell completes names of archives and runs: argcomplete, which Airflow's program calls, asks our arguments."""

import os
import subprocess
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import argcomplete
import pytest
from airflow.cli.cli_parser import get_parser

from kafka_archiver.messages.errors import TransientError
from kafka_archiver.orchestration.cli import completion
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range
from scripts.stack.paths import BIN
from tests.support.lake import Lake
from tests.support.runs import P0

pytestmark = pytest.mark.dags
ORDERS = "archive: orders\nsource: {topics: [orders]}\nstore: {url: s3://archive/lake}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARCHIVER_CONFIG_DIR", str(tmp_path))
    (tmp_path / "orders.yaml").write_text(ORDERS)
    (tmp_path / "other.yaml").write_text("archive: returns\nno_such_key: 1\n")
    return tmp_path


def completed(line: str) -> list[str]:
    """Return what argcomplete offers at the end of a line."""
    *words, begun = line.split(" ")
    # argcomplete changes the parser, and Airflow keeps it.
    get_parser.cache_clear()
    finder = argcomplete.CompletionFinder(get_parser(), always_complete_options=False)
    try:
        return [word.strip() for word in finder._get_completions(words, begun, "", None)]
    finally:
        get_parser.cache_clear()


def opens(monkeypatch: pytest.MonkeyPatch, ledger: object) -> None:
    """Let commands open this ledger, whatever the archive."""

    def open_archive(archive: object) -> SimpleNamespace:
        if isinstance(ledger, Exception):
            raise ledger
        return SimpleNamespace(ledger=ledger() if callable(ledger) else ledger)

    monkeypatch.setattr("kafka_archiver.orchestration.connections.open_archive", open_archive)


@pytest.mark.parametrize(("command", "names"), [("status ", ["orders", "returns"]), ("show or", ["orders"])])
def test_archives_are_completed_also_those_whose_file_is_wrong(command: str, names: list[str]) -> None:
    assert completed(f"airflow archive {command}") == names


def test_airflow_s_own_program_completes_them(tmp_path: Path) -> None:
    line = "airflow archive status "
    call = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    places = {"_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "words"), "AIRFLOW_HOME": str(tmp_path / "airflow")}
    subprocess.run([BIN / "airflow"], env={**os.environ, **call, **places}, check=True, timeout=120)
    assert {"orders", "returns"} <= set((tmp_path / "words").read_text().split())


@pytest.mark.parametrize("command", ["show orders ", "rebuild orders --run ", "replay-dead-letters orders "])
def test_the_newest_runs_of_the_archive_are_completed(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 5)}, name="orders")
    lake.run(4)
    lake.run(5)
    opens(monkeypatch, lake.ledger)
    assert completed(f"airflow archive {command}") == ["20261120T050000Z", "20261120T040000Z"]


def test_nothing_is_completed_where_something_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opens(monkeypatch, TransientError("the store does not answer"))
    assert completion.run_names(SimpleNamespace(archive="orders")) == ()  # type: ignore[arg-type]
    assert completion.run_names(SimpleNamespace(archive="gone")) == ()  # type: ignore[arg-type]
    monkeypatch.setenv("ARCHIVER_CONFIG_DIR", str(folder / "gone"))
    assert completion.archive_names() == ()


def test_nobody_waits_for_a_store_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "SECONDS", 0.1)
    opens(monkeypatch, lambda: time.sleep(5))
    begun = time.monotonic()
    assert completion.run_names(SimpleNamespace(archive="orders")) == ()  # type: ignore[arg-type]
    assert time.monotonic() - begun < 4

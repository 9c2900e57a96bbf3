"""From YAML files to DAGs, as Airflow's DAG processor does it."""

import subprocess
import sys
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag

import kafka_archiver
from kafka_archiver.orchestration.dags.archive import archive_dags
from kafka_archiver.orchestration.folder import config_folder
from scripts.stack.paths import ROOT
from tests.dags.conftest import MINIMAL, Call, load

pytestmark = pytest.mark.dags


def test_the_checkout_loads_without_import_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARCHIVER_CONFIG_DIR", raising=False)
    bag = load()
    assert bag.import_errors == {}
    assert "archive_orders" in bag.dags


def test_each_yaml_file_is_a_dag_and_one_that_audits(archives: Path) -> None:
    names = ("orders", "payments", "with.dots-and_more")
    for name in names:
        (archives / f"{name}.yaml").write_text(MINIMAL.format(name=name))
    (archives / "notes.txt").write_text("not an archive")
    bag = load()
    assert bag.import_errors == {}
    assert set(bag.dags) == {
        "archiver_watchdog",
        *(f"{kind}_{name}" for kind in ("archive", "audit", "restore") for name in names),
    }


def test_a_broken_file_is_an_import_error_that_names_file_and_key_and_stops_nobody_else(archives: Path) -> None:
    (archives / "orders.yaml").write_text(MINIMAL.format(name="orders"))
    (archives / "broken.yaml").write_text(MINIMAL.format(name="broken") + "sink: {}\n")
    (archives / "late.yaml").write_text(MINIMAL.format(name="late") + "timezone: Mars/Base\n")
    bag = load()
    assert set(bag.dags) == {"archive_orders", "audit_orders", "restore_orders", "archiver_watchdog"}
    # Airflow stops all DAGs of a file that has an import error: it must not be the file with the good ones.
    assert list(bag.import_errors) == ["archive_errors.py"]
    error = bag.import_errors["archive_errors.py"]
    assert "broken.yaml: `sink` is not a key of an archive" in error
    assert "late.yaml: `timezone`: expected the name of a time zone" in error


def test_an_archive_of_environment_variables_is_a_dag_like_any_other(
    archives: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (archives / "orders.yaml").write_text(MINIMAL.format(name="orders"))
    for name, value in (("ARCHIVE", "payments"), ("SOURCE__TOPICS", "a,b"), ("STORE__URL", "s3://bucket/lake")):
        monkeypatch.setenv(f"ARCHIVER_{name}", value)
    bag = load()
    assert bag.import_errors == {}
    assert {"archive_orders", "archive_payments", "audit_payments"} <= set(bag.dags)
    [payments] = (entry for entry in call("list", "-o", "json").json if entry["archive"] == "payments")
    assert (payments["topics"], payments["file"]) == (["a", "b"], "environment variables ARCHIVER_*")
    assert [entry["problems"] for entry in call("validate", "-o", "json").json] == [[], []]
    assert [entry["archive"] for entry in call("validate", "payments", "-o", "json").json] == ["payments"]
    monkeypatch.setenv("ARCHIVER_ARCHIVE", "orders")
    assert "the name 'orders' is taken by" in load().import_errors["archive_errors.py"]
    monkeypatch.setenv("ARCHIVER_RETRIES", "x")
    assert "`retries`: expected a whole number" in call("validate", code=1).out


def test_a_missing_folder_is_an_import_error(archives: Path) -> None:
    archives.rmdir()
    assert f"{archives}: no such folder" in load().import_errors["archive_errors.py"]


def test_a_copy_that_kept_the_name_does_not_replace_the_archive(archives: Path) -> None:
    (archives / "orders.yaml").write_text(MINIMAL.format(name="orders"))
    (archives / "a copy.yaml").write_text(MINIMAL.format(name="orders").replace("lake", "elsewhere"))
    bag = load()
    assert "s3://bucket/lake" in (bag.dags["archive_orders"].doc_md or "")
    assert "a copy.yaml: `archive`: the name 'orders' is taken by" in bag.import_errors["archive_errors.py"]


def test_of_two_files_with_one_name_neither_is_guessed_to_be_the_right_one(archives: Path) -> None:
    for file in ("a", "b"):
        (archives / f"{file}.yaml").write_text(MINIMAL.format(name="orders"))
    bag = load()
    assert "archive_orders" not in bag.dags
    assert all(f"{file}.yaml: `archive`" in bag.import_errors["archive_errors.py"] for file in ("a", "b"))


@pytest.mark.parametrize("dag", ["archive_orders", "audit_orders", "restore_orders", "archiver_watchdog"])
def test_a_task_that_starts_gets_its_own_dag_alone_whatever_is_wrong_elsewhere(
    archives: Path, monkeypatch: pytest.MonkeyPatch, dag: str
) -> None:
    for name in ("orders", "payments"):
        (archives / f"{name}.yaml").write_text(MINIMAL.format(name=name))
    (archives / "broken.yaml").write_text("archive: [")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", dag)
    bag = load()
    assert (bag.import_errors, list(bag.dags)) == ({}, [dag])


def test_what_airflow_refuses_is_an_error_of_that_archive_alone(
    archives: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("orders", "payments"):
        (archives / f"{name}.yaml").write_text(MINIMAL.format(name=name))
    # Longer than Airflow takes; no YAML that passes our own checks is known to be refused.
    monkeypatch.setattr(
        "kafka_archiver.orchestration.dags.archive.tags", lambda a: ["x" * 101] if a.archive == "orders" else []
    )
    dags, errors = archive_dags()
    assert list(dags) == ["archive_payments"]
    assert ["archive orders: Airflow cannot make a DAG of it: " in str(e) for e in errors] == [True]


def test_airflow_parses_the_dags_without_the_clients_that_only_tasks_need() -> None:
    code = (
        "import sys, kafka_archiver.orchestration.dags\n"
        "print(*sorted({'boto3', 'confluent_kafka', 'fastavro', 'pyarrow', 'pyspark'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def two_lines(folder: Path, lines: str) -> DagBag:
    """Load a DAG file of these lines as Airflow does, which passes over files that do not look like DAG files."""
    folder.mkdir()
    (folder / "mine.py").write_text(lines)
    return DagBag(dag_folder=folder, bundle_path=folder, bundle_name="test", safe_mode=True)


def test_a_dag_file_of_two_lines_has_the_dags_of_the_checkout_and_a_second_one_the_errors(
    archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("orders", "payments"):
        (archives / f"{name}.yaml").write_text(MINIMAL.format(name=name))
    (archives / "broken.yaml").write_text("archive: [")
    dags = "from kafka_archiver import airflow_dags\nglobals().update(airflow_dags())\n"
    bag = two_lines(tmp_path / "dags", dags)
    assert (bag.import_errors, set(bag.dags)) == ({}, set(load().dags))
    errors = "from kafka_archiver import airflow_dag_errors\nairflow_dag_errors()\n"
    bag = two_lines(tmp_path / "errors", errors)
    assert "broken.yaml" in bag.import_errors["mine.py"]
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "audit_orders")
    assert list(two_lines(tmp_path / "of_a_task", dags).dags) == ["audit_orders"]


def test_a_dag_file_may_name_its_folder_and_a_missing_one_is_its_import_error(
    archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_CONFIG_DIR", str(tmp_path / "elsewhere"))
    (archives / "orders.yaml").write_text(MINIMAL.format(name="orders"))
    lines = "from kafka_archiver import airflow_dags\nglobals().update(airflow_dags({!r}))\n"
    assert "archive_orders" in two_lines(tmp_path / "dags", lines.format(str(archives))).dags
    bag = two_lines(tmp_path / "missing", lines.format("/no/such/folder"))
    assert "/no/such/folder: no such folder" in bag.import_errors["mine.py"]


def test_without_a_setting_the_folder_is_archives_in_airflows_dags_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARCHIVER_CONFIG_DIR", raising=False)
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", "/opt/airflow/dags")
    assert config_folder() == ROOT / "include" / "archives"
    # An installed package has no folder of archives beside it.
    monkeypatch.setattr(kafka_archiver, "__file__", str(tmp_path / "kafka_archiver" / "__init__.py"))
    assert config_folder() == Path("/opt/airflow/dags/archives")

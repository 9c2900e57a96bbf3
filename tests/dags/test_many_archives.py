"""A folder of many archives: what is read and made for each, counted. docs/PERFORMANCE.md has the times."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk import Param
from airflow.serialization.serialized_objects import LazyDeserializedDAG

from kafka_archiver.config import load, yaml_text
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.dags import archive_dags, audit_dags
from tests.dags.conftest import MINIMAL

pytestmark = pytest.mark.dags

COUNT = 12


@pytest.fixture
def many(archives: Path) -> Path:
    for number in range(COUNT):
        (archives / f"a{number}.yaml").write_text(MINIMAL.format(name=f"a{number}"))
    return archives


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often a YAML is read, and a parameter checked against its schema."""
    counts: Counter[str] = Counter()

    def count(owner: Any, name: str, key: str) -> None:
        real = getattr(owner, name)

        def counting(*args: Any, **more: Any) -> Any:
            counts[key] += 1
            return real(*args, **more)

        monkeypatch.setattr(owner, name, counting)

    count(load, "read_yaml", "yaml")
    count(Param, "resolve", "param")
    return counts


def test_each_file_is_read_once_and_no_parameter_is_checked_for_each_task(many: Path, counted: Counter[str]) -> None:
    dags, errors = archive_dags()
    assert (len(dags), errors) == (COUNT, [])
    assert counted == {"yaml": COUNT}
    # Airflow stores the DAGs: it checks the parameters of a DAG twice, and would check those of each task.
    params = sum(len(dag.params) for dag in dags.values())
    for dag in dags.values():
        LazyDeserializedDAG.from_dag(dag)
    assert counted["param"] <= 3 * params


def test_tasks_have_no_copies_of_the_dag_s_parameters(many: Path) -> None:
    for dag in [*archive_dags()[0].values(), *audit_dags().values()]:
        assert dag.params
        # Nobody has checked the defaults yet.
        dag.params.validate()
        assert [task.task_id for task in dag.tasks if task.params] == []


def test_a_task_that_is_about_to_run_reads_its_own_file_alone(many: Path, counted: Counter[str]) -> None:
    assert [*archive_dags(only="archive_a7")[0]] == ["archive_a7"]
    assert counted["yaml"] == 1
    assert [*audit_dags(only="audit_a7")] == ["audit_a7"]
    assert counted["yaml"] == 2
    # The files of the other kind, which Airflow does not ask for it.
    assert (archive_dags(only="audit_a7")[0], audit_dags(only="archive_a7")) == ({}, {})
    assert counted["yaml"] == 2


def test_a_file_of_another_name_is_found_too(many: Path, counted: Counter[str]) -> None:
    (many / "a7.yaml").rename(many / "seven.yaml")
    assert [*archive_dags(only="archive_a7")[0]] == ["archive_a7"]
    assert counted["yaml"] == COUNT
    # A file that is named after another archive.
    (many / "a3.yaml").write_text(MINIMAL.format(name="other"))
    assert archive_dags(only="archive_a3")[0] == {}
    # Two files with a right to the name: none has it, as when all are read.
    (many / "a5.yml").write_text(MINIMAL.format(name="a5"))
    assert archive_dags(only="archive_a5")[0] == {}
    assert "archive_a5" not in archive_dags()[0]


def test_yaml_is_parsed_by_libyaml() -> None:
    assert yaml.__with_libyaml__
    assert isinstance(yaml_text._loader(MINIMAL.format(name="a")), yaml.CSafeLoader)
    with pytest.raises(ConfigError, match="at most 100 levels"):  # which overflow libyaml's stack
        yaml_text._loader("[" * 10_000)

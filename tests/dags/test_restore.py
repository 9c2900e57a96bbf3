"""The DAG that restores an archive, its form, and the command that starts it."""

from argparse import Namespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from kafka_archiver.messages.actions import Action
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.findings import problem, warning
from kafka_archiver.model.restore import RestoreLimits
from kafka_archiver.orchestration.cli.restore import RESTORE, conf_of_arguments, judged
from kafka_archiver.orchestration.dag_run.restore_form import KEYS, restore_params, restore_request
from kafka_archiver.orchestration.dags.restore import restore_dag
from kafka_archiver.work.restore.prepare import Forecast
from tests.dags.conftest import MakeArchive

pytestmark = pytest.mark.dags
TASKS = ["plan", "restore", "verify", "translate_groups"]
TOPICS = ["orders", "orders.eu", "shipments"]


@pytest.fixture
def dag(archive: MakeArchive) -> DAG:
    return restore_dag(archive())


def test_its_tasks_follow_each_other_and_only_a_person_starts_it(dag: DAG) -> None:
    assert dag.dag_id == "restore_orders"
    for task, following in zip(TASKS, [*TASKS[1:], None], strict=True):
        assert dag.get_task(task).downstream_task_ids == ({following} if following else set())
    assert type(dag.timetable).__name__ == "NullTimetable"
    # A triggered run of a paused DAG would wait.
    assert dag.is_paused_upon_creation is False


def test_airflow_can_store_it_with_its_form(dag: DAG) -> None:
    read = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert set(read.params) == set(restore_params()) == KEYS
    defaults = {key: param.resolve() for key, param in restore_params().items()}
    assert restore_request(defaults, TOPICS, "default").selection.topics == tuple(TOPICS)


def test_a_form_becomes_a_request() -> None:
    request = restore_request(
        {
            "topics": ["orders.*"],
            "rename": [r"orders=copy", r"(.*)=\1_restored"],
            "from": "2026-11-20T00:00:00Z",
            "until": "2026-11-20T03:00:00Z",
            "keys": ["k", "base64:/w=="],
            "headers": ["h", "h=1=2"],
            "allow": ["lost", "timestamps"],
            "bytes_per_second": 5,
        },
        TOPICS,
        "default",
    )
    selection = request.selection
    assert request.restore == "default"
    assert [request.target_of(topic) for topic in selection.topics] == ["copy", "orders.eu_restored"]
    assert selection.hours is not None
    assert selection.hours[1] - selection.hours[0] == 3
    assert selection.keys == ("aw==", "/w==")
    assert [(header.name, header.value) for header in selection.headers] == [("h", None), ("h", "MT0y")]
    assert request.options.allow == ("lost", "timestamps")
    assert request.limits == RestoreLimits(bytes_per_second=5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"topics": ["nothing"]}, "has no topic 'nothing'; it has orders, orders.eu, shipments"),
        ({"rename": ["orders"]}, "expected FROM=TO, as in orders=orders_restored, found 'orders'"),
        ({"rename": [r"(orders)=\7"]}, "rename: expected a replacement"),
        ({"from": "2026-11-20T00:00:00Z"}, "expected both `from` and `until`"),
        ({"from": "2026-11-20T00:30:00Z", "until": "2026-11-20T03:00:00Z"}, "on full hours"),
        ({"rename": ["order=x"]}, "'order=x' renames none of the restored topics: orders, orders.eu, shipments"),
        ({"rename": ["orders.*=all"]}, "orders and orders.eu would both be written to all"),
        ({"rename": ["orders=shipments"]}, "orders and shipments would both be written to shipments"),
        (
            {"topics": ["shipments"], "rename": [r"(ord)?(.*)=\1"]},
            "shipments would become '', which is not the name of a topic",
        ),
        ({"rename": ["orders=a b"]}, "orders would become 'a b'"),
        ({"restore": "a/../b"}, "'a/../b' is not the name of a restore"),
        ({"start": 5, "end": 5}, "expected `start` from 0 on and before `end`"),
        ({"start": -5}, "found the offsets -5 and None"),
        ({"partitions": [-1]}, "partitions: expected a number from 0 on, found -1"),
        ({"generation": -1}, "generation: expected a number from 0 on, found -1"),
        ({"keys": ["base64:?"]}, "expected base64"),
        ({"keys": ["\udcff"]}, r"keys: '\\udcff' is not UTF-8: give its bytes as base64"),
        ({"headers": ["h=\udcff"]}, "is not UTF-8"),
        ({"headers": ["=v"]}, "headers: expected NAME or NAME=VALUE without NUL, found '=v'"),
        ({"allow": ["all"]}, "allow: expected values_only, rows, lost, timestamps, headers; found all"),
        ({"as_of": "noon"}, "as_of: expected a time like"),
        ({"as_of": "0001-01-01T00:00:00+14:00"}, "as_of: expected a time like"),
    ],
)
def test_a_wrong_parameter_says_what_was_expected(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        restore_request(params, TOPICS, "default")


def test_the_command_has_every_field_of_the_form(tmp_path: Any) -> None:
    file = tmp_path / "keys"
    # As Windows' Notepad writes it; U+2028 does not end a line, and PostgreSQL keeps no NUL in a conf.
    file.write_bytes("\ufeffb\u2028\r\n\r\nc\r\n\0".encode())
    arguments: dict[str, Any] = {
        (arg.kwargs.get("dest") or arg.flags[-1].lstrip("-").replace("-", "_")): None for arg in RESTORE.args
    }
    asked = {"restore": "r", "topics": ["orders"], "keys": ["a"], "keys_file": str(file), "start": 0, "create": True}
    conf = conf_of_arguments(Namespace(**{**arguments, **asked}))
    keys = ["a", "b\u2028", "c", "base64:AA=="]
    assert conf == {"restore": "r", "topics": ["orders"], "keys": keys, "start": 0, "create": True}
    assert {*arguments, "from"} >= KEYS


@pytest.mark.parametrize("content", [b"", b"\n\r\n", b"\xff"])
def test_a_file_without_a_key_is_refused_and_does_not_mean_all_keys(tmp_path: Any, content: bytes) -> None:
    file = tmp_path / "keys"
    file.write_bytes(content)
    arguments: dict[str, Any] = {
        (arg.kwargs.get("dest") or arg.flags[-1].lstrip("-").replace("-", "_")): None for arg in RESTORE.args
    }
    with pytest.raises(ConfigError, match=r"--keys-file .*keys: expected keys"):
        conf_of_arguments(Namespace(**{**arguments, "keys_file": str(file)}))


def test_a_missing_topic_that_is_created_is_no_trouble() -> None:
    missing = problem("topic missing", "the target has no topic copy", Action("look", "make it"))
    outlook = Forecast(sources=(), findings=(missing, warning("x", "the rest")), refused="")
    assert [*judged(outlook, create=True)] == ["the target has no topic copy: --create makes it", "Mind: the rest"]
    assert next(judged(outlook, create=False)) == "Refused: the target has no topic copy. To do: look"

"""The way a task hands on an error: of ours it is told as a value, unless another try of Spark's may help."""

import gc
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_archiver.messages.errors import ArchiverError, BadRecordError, Failure, IntegrityError, TransientError
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.writer.result import Limits, WriteJob
from kafka_archiver.spark import sink as module
from kafka_archiver.spark.engine import tries
from kafka_archiver.spark.sink import Sink, failed, unpacked
from kafka_archiver.values.garbage_collector import pass_over_modules
from tests.support.values import plan

pytestmark = pytest.mark.unit
BAD = BadRecordError("t", 0, {3: "no line"})


@pytest.mark.parametrize(
    ("error", "attempt", "kind"),
    [
        (BAD, 0, BadRecordError),
        (BAD, 3, BadRecordError),
        (TransientError("no answer"), 0, None),
        (TransientError("no answer"), 2, None),
        (TransientError("no answer"), 3, TransientError),
        # Executors were lost, which Spark does not count.
        (TransientError("no answer"), 5, TransientError),
        (ValueError("a fault of ours"), 3, None),
        (KeyboardInterrupt(), 3, None),
    ],
)
def test_what_a_task_tells_instead_of_raising_it(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, attempt: int, kind: type[ArchiverError] | None
) -> None:
    running = SimpleNamespace(attemptNumber=lambda: attempt)
    monkeypatch.setattr(module, "TaskContext", SimpleNamespace(get=lambda: running))
    messages: list[bytes] = []
    collected: Any = SimpleNamespace(add=messages.extend)
    failure = Sink(
        plan(), "memory://x", {}, Limits(), WriteJob(archive="a", settings=Settings()), collected, 4
    ).failure(error)
    if kind is None:
        assert (failure, messages) == (None, [])
    else:
        assert messages == [failure]
        again = failed(unpacked(messages))
        assert type(again) is kind
        assert str(again) == str(error)


def test_what_nobody_can_mend_goes_before_what_may_pass() -> None:
    failures = [Failure.of(e) for e in (TransientError("a"), IntegrityError("b"), TransientError("c"))]
    assert type(failed(failures)) is IntegrityError
    assert type(failed(failures[:1])) is TransientError
    assert failed([]) is None


def test_no_collection_looks_at_modules_once_a_task_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[int] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(1))
    monkeypatch.setattr(module, "keep_freed_memory", lambda: None)
    pass_over_modules.cache_clear()
    sink = Sink(plan(), "memory://x", {}, Limits(), WriteJob(archive="a", settings=Settings()), None, 1)
    sink.begin()
    # Another task of the same process: by now there may be more than modules.
    sink.begin()
    assert frozen == [1]


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", 1),
        ("local[*]", 1),
        ("local[2]", 1),
        ("local[2, 3]", 3),
        ("local-cluster[2,1,1024]", 7),
        ("spark://h:7077", 7),
        ("yarn", 7),
    ],
)
def test_how_often_spark_tries_a_task(master: str, expected: int) -> None:
    context: Any = SimpleNamespace(master=master, getConf=lambda: {"spark.task.maxFailures": "7"})
    assert tries(context) == expected

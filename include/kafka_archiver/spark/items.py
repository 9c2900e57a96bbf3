"""Work on items in Spark tasks, one task an item or several; what fails comes back as a value."""

import logging
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from pyspark import SparkContext

from kafka_archiver.messages.errors import ArchiverError, Failure, TransientError
from kafka_archiver.spark.failures import understand

log = logging.getLogger(__name__)
Item = TypeVar("Item")
Result = TypeVar("Result")
# Returns True once the process is asked to end.
Stop = Callable[[], bool]


def work_on(
    context: SparkContext, items: Sequence[Item], work: Callable[[Item, Stop], Result], at_once: int | None = None
) -> list[Result]:
    """Return the results of `work` in the order of the items. All items are worked on, also if some fail.

    :param work: must be picklable; it may be called again for the same item.
    :param at_once: the most items that are worked on at the same time; None: as many as Spark has cores.
    :raises ArchiverError: of an item; a permanent error rather than a transient one.
    """

    def run(some: Iterable[tuple[int, Item]]) -> Iterator[bytes]:
        for number, item in some:
            yield pickle.dumps((number, _outcome(work, item)))

    numbered = list(enumerate(items))
    tasks = len(numbered) if at_once is None else min(at_once, len(numbered))
    try:
        pickled = context.parallelize(numbered, max(1, tasks)).mapPartitions(run).collect()
    except Exception as error:
        raise understand(error) from error
    outcomes = dict(pickle.loads(answer) for answer in pickled)
    failures = [outcome.error() for outcome in outcomes.values() if isinstance(outcome, Failure)]
    for failure in failures:
        log.error("%s", failure)
    if failures:
        raise min(failures, key=lambda error: isinstance(error, TransientError))
    return [outcomes[number] for number in range(len(items))]


def _outcome(work: Callable[[Item, Stop], Result], item: Item) -> Result | Failure:
    try:
        with stopped_by_signal() as stop:
            return work(item, stop)
    except ArchiverError as error:
        return Failure.of(error)


@contextmanager
def stopped_by_signal() -> Iterator[Stop]:
    """Note a SIGTERM instead of dying of it, so that what is begun can end well."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = signal.signal(signal.SIGTERM, lambda *_: asked.set())
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGTERM, before)

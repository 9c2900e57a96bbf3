"""Runs one function for many items in a few threads."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")
# Requests at the same time, if nobody says another number.
THREADS = 16


def each(action: Callable[[Item], Done], items: Iterable[Item], threads: int | None = None) -> list[Done]:
    """The results of `action` in the order of the items. The first error stops the work and is raised.

    An executor's `map` would make one future per item, and a run may have millions of items.
    """
    waiting = list(items)
    # next() on a counter is atomic, so each index is taken once.
    index = count()
    failed = False
    results: dict[int, Done] = {}

    def work() -> None:
        nonlocal failed
        while not failed and (i := next(index)) < len(waiting):
            try:
                results[i] = action(waiting[i])
            except BaseException:
                failed = True
                raise

    most = threads or THREADS
    with ThreadPoolExecutor(most) as pool:
        workers = [pool.submit(work) for _ in range(min(most, len(waiting)))]
    for worker in workers:
        worker.result()
    return [results[i] for i in range(len(waiting))]


def refused(check: Callable[[Item], object], items: Iterable[Item]) -> list[Item]:
    """The items for which `check` gives nothing that is true, in their order. Errors as of `each`."""
    checked = list(items)
    return [item for item, answer in zip(checked, each(check, checked), strict=True) if not answer]

"""The same small thing for many items, in a few threads."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")


def each(action: Callable[[Item], Done], items: Iterable[Item], threads: int) -> list[Done]:
    """What `action` gives for each item, in the items' order. The first error ends it and is raised.

    Unlike an executor's map it makes no future an item, of which a run may have millions.
    """
    waiting = list(items)
    # next() on a counter is atomic: every index is taken once, and none after a failure.
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

    with ThreadPoolExecutor(threads) as pool:
        workers = [pool.submit(work) for _ in range(min(threads, len(waiting)))]
    for worker in workers:
        worker.result()
    return [results[i] for i in range(len(waiting))]

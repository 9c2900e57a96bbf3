"""A cache that never makes a request wait for a slow service: old values are given while new ones are fetched."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Hashable
from typing import Generic, NamedTuple, TypeVar

log = logging.getLogger(__name__)
Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept")


class _Entry(NamedTuple, Generic[Kept]):
    value: Kept
    at: float


class Cache(Generic[Key, Kept]):
    """Values by key. A value older than `fresh` seconds is fetched again in the background, once at a time.

    :param load: makes a value from the key and the earlier value, if there is one. An error is logged, and the earlier
        value stays.
    :param most: values that are kept; the oldest ones go first.
    :param workers: threads that fetch, started when they are needed. They never keep the process from ending.
    """

    def __init__(
        self,
        load: Callable[[Key, Kept | None], Kept],
        fresh: float,
        workers: int = 4,
        most: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load, self.fresh, self._workers, self._most, self._clock = load, fresh, workers, most, clock
        self._entries: dict[Key, _Entry[Kept]] = {}
        self._wanted: set[Key] = set()
        self._queue: queue.SimpleQueue[Key] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._threads = 0

    def get(self, key: Key, wait: float = 0.0) -> Kept | None:
        """The value of one key, as `many`."""
        return self.many([key], wait)[key]

    def many(self, keys: Collection[Key], wait: float = 0.0) -> dict[Key, Kept | None]:
        """What is known now, None for what is not; whatever is not fresh is fetched.

        :param wait: seconds to wait, in all, for values that are not known at all.
        """
        until = time.monotonic() + wait
        with self._changed:
            self._want(keys)
            while (left := until - time.monotonic()) > 0 and any(
                k in self._wanted and k not in self._entries for k in keys
            ):
                self._changed.wait(left)
            return {key: entry.value if (entry := self._entries.get(key)) else None for key in keys}

    def forget(self, key: Key) -> None:
        """Fetch this value again at the next request; until then the old one is given."""
        with self._changed:
            if entry := self._entries.get(key):
                self._entries[key] = entry._replace(at=float("-inf"))

    def keep(self, keys: Collection[Key]) -> None:
        """Drop the values of all other keys."""
        with self._changed:
            kept = set(keys)
            self._entries = {key: entry for key, entry in self._entries.items() if key in kept}

    def _is_awaited(self, key: Key) -> bool:
        return key in self._wanted and key not in self._entries

    def _want(self, keys: Collection[Key]) -> None:
        now = self._clock()
        for key in keys:
            entry = self._entries.get(key)
            if key not in self._wanted and (entry is None or now - entry.at >= self.fresh):
                self._wanted.add(key)
                self._queue.put(key)
        while self._threads < min(self._workers, len(self._wanted)):
            self._threads += 1
            threading.Thread(target=self._work, daemon=True, name="archiver-page").start()

    def _work(self) -> None:
        while True:
            key = self._queue.get()
            entry = self._entries.get(key)
            try:
                found = _Entry(self._load(key, entry.value if entry else None), self._clock())
            except Exception:
                log.exception("%s could not be looked at", key)
                found = None
            with self._changed:
                self._wanted.discard(key)
                if found:
                    self._entries[key] = found
                if self._most is not None and len(self._entries) > self._most:
                    del self._entries[min(self._entries, key=lambda kept: self._entries[kept].at)]
                self._changed.notify_all()

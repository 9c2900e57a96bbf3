"""A cache that never makes a request wait for a slow service: old values are given while new ones are fetched."""

import itertools
import logging
import math
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


class Near(NamedTuple):
    """The freshness of a value for somebody who looks at it alone. Seconds.

    :param age: an older value is fetched ahead of those for which a greater age, or none, is good.
    :param wait: for this; then the old value is given.
    """

    age: float
    wait: float


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
        # Keys that are queued or at work, each with its rank. One that is wanted sooner is queued again.
        self._wanted: dict[Key, float] = {}
        # When they were first asked for since their last value.
        self._wanted_since: dict[Key, float] = {}
        self._at_work: set[Key] = set()
        self._outdated: set[Key] = set()
        self._queue: queue.PriorityQueue[tuple[float, int, Key]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._threads = 0

    def get(self, key: Key, wait: float = 0.0, near: Near | None = None) -> Kept | None:
        """Return the value of one key, as `many`."""
        return self.many([key], wait, near)[key]

    def many(self, keys: Collection[Key], wait: float = 0.0, near: Near | None = None) -> dict[Key, Kept | None]:
        """Return the known values, None for unknown ones; whatever is not fresh is fetched.

        :param wait: seconds to wait, in all, for values that are not known at all.
        :param near: fetch and await known values, too.
        """
        begun = time.monotonic()
        with self._changed:
            self._want(keys, near)
            while awaited := [k for k in keys if k in self._wanted]:
                unknown = any(k not in self._entries for k in awaited)
                left = begun + (wait if unknown else near.wait if near else 0.0) - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            return {key: entry.value if (entry := self._entries.get(key)) else None for key in keys}

    def is_awaited(self, key: Key) -> bool:
        """Return True if a value is being fetched."""
        with self._changed:
            return key in self._wanted

    def waited(self, key: Key) -> float:
        """Return the seconds since somebody first asked for a fresher value that has not come; 0: it has come."""
        with self._changed:
            since = self._wanted_since.get(key)
            return 0.0 if since is None else self._clock() - since

    def known(self, key: Key) -> Kept | None:
        """Return the value of one key as it is, however old; nothing is fetched."""
        with self._changed:
            return entry.value if (entry := self._entries.get(key)) else None

    def put(self, key: Key, value: Kept, age: float = 0.0) -> None:
        """Keep a value that was fetched elsewhere, so many seconds ago, unless a newer one is kept."""
        entry = _Entry(value, self._clock() - age)
        with self._changed:
            if (kept := self._entries.get(key)) is None or kept.at < entry.at:
                self._entries[key] = entry
                self._wanted_since.pop(key, None)

    def forget(self, is_old: Callable[[Key], bool]) -> None:
        """Fetch these values again at the next request; until then the old ones are given."""
        with self._changed:
            # What is being fetched may be of the time before.
            self._outdated |= {key for key in self._at_work if is_old(key)}
            for key, entry in self._entries.items():
                if is_old(key):
                    self._entries[key] = entry._replace(at=float("-inf"))

    def keep(self, keys: Collection[Key]) -> None:
        """Drop the values of all other keys."""
        with self._changed:
            kept = set(keys)
            self._entries = {key: entry for key, entry in self._entries.items() if key in kept}
            self._wanted_since = {key: since for key, since in self._wanted_since.items() if key in kept}

    def _want(self, keys: Collection[Key], near: Near | None) -> None:
        moment, rank = self._clock(), math.inf if near is None else near.age
        most = min(rank, self.fresh)
        for key in keys:
            entry, queued_rank = self._entries.get(key), self._wanted.get(key)
            is_new = queued_rank is None and (entry is None or moment - entry.at >= most)
            if is_new or (queued_rank is not None and rank < queued_rank and key not in self._at_work):
                self._wanted[key] = rank
                self._wanted_since.setdefault(key, moment)
                self._queue.put((rank, next(self._numbers), key))
        while self._threads < min(self._workers, len(self._wanted)):
            self._threads += 1
            threading.Thread(target=self._work, daemon=True, name="archiver-page").start()

    def _work(self) -> None:
        while True:
            _, _, key = self._queue.get()
            with self._changed:
                if key not in self._wanted or key in self._at_work:
                    # Its place before it was queued ahead.
                    continue
                self._at_work.add(key)
            while self._fetch(key):
                pass

    def _fetch(self, key: Key) -> bool:
        """Fetch a value. Return whether it was outdated meanwhile."""
        with self._changed:
            entry = self._entries.get(key)
            self._outdated.discard(key)
        try:
            fetched = _Entry(self._load(key, entry.value if entry else None), self._clock())
        except Exception:
            log.exception("%s could not be looked at", key)
            fetched = None
        with self._changed:
            if fetched:
                self._entries[key] = fetched
                self._wanted_since.pop(key, None)
            if self._most is not None and len(self._entries) > self._most:
                del self._entries[min(self._entries, key=lambda kept: self._entries[kept].at)]
            if key in self._outdated:
                return True
            self._wanted.pop(key, None)
            self._at_work.discard(key)
            self._changed.notify_all()
            return False

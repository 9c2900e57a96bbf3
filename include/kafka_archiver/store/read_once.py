"""A store of which each object is read once: what is read at several places of one look is of one moment."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Any, TypeAlias

from kafka_archiver.store.base import Store

_Request: TypeAlias = tuple[Any, ...]


class ReadOnce:
    """A store that gives its first answer to a request, be it an error, again. For one look, from several threads."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, Lock()
        self._answers: dict[_Request, Future[Any]] = {}

    def get(self, key: str) -> bytes | None:
        # One request gives both.
        version = self.version(key)
        return version and version.data  # type: ignore[no-any-return]

    def read(self, key: str, start: int, length: int) -> bytes | None:
        return self._once(self._store.read, key, start, length)  # type: ignore[no-any-return]

    def version(self, key: str) -> Any:
        return self._once(self._store.version, key)

    def _once(self, ask: Callable[..., Any], *request: Any) -> Any:
        with self._lock:
            is_first = (ask.__name__, *request) not in self._answers
            answer = self._answers.setdefault((ask.__name__, *request), Future())
        if is_first:
            try:
                answer.set_result(ask(*request))
            except Exception as error:
                answer.set_exception(error)
                raise
        return answer.result()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

"""A store that counts what is read of it."""

from typing import Any, NamedTuple

from kafka_archiver.store import Store


class Amount(NamedTuple):
    """Requests that read something, and the bytes that they gave."""

    requests: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        return f"{self.bytes:,} bytes in {self.requests:,} request{'s' * (self.requests != 1)}"


class Metered:
    """A store, with the requests and the bytes of its reads: all, and those of objects with records."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.ledger = self.objects = Amount()

    def get(self, key: str) -> bytes | None:
        return self._counted(key, self._store.get(key))

    def read(self, key: str, start: int, length: int) -> bytes | None:
        return self._counted(key, self._store.read(key, start, length))

    def version(self, key: str) -> Any:
        version = self._store.version(key)
        self._counted(key, version and version.data)
        return version

    def _counted(self, key: str, data: bytes | None) -> bytes | None:
        name = "ledger" if key.startswith("_ledger/") else "objects"
        before: Amount = getattr(self, name)
        setattr(self, name, Amount(before.requests + 1, before.bytes + len(data or b"")))
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

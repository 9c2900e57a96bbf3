"""A store: objects in this process, behind a token that a connection of the type `twin` has."""

from collections.abc import Mapping
from typing import Any

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.stores import StoreType
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.store.retry import Backoff


def check(options: Mapping[str, str]) -> None:
    if set(options) != {"token"}:
        raise ConfigError(f"store options: expected token, found {', '.join(options) or 'none'}")


def from_connection(connection: Any, where: str) -> dict[str, str]:
    return {"token": connection.password}


def open_twin(name: str, prefix: str, options: Mapping[str, str], backoff: Backoff) -> MemoryStore:
    check(options)
    store = MemoryStore(name, prefix, foreign_etags=True, checksums=False)
    store.url = f"twin://{name}/{prefix}".rstrip("/")
    return store


TWIN = StoreType(
    "twin",
    opener=f"{__name__}:open_twin",
    check=f"{__name__}:check",
    example="twin://name/prefix",
    connections=("twin",),
    connection="twin_default",
    from_connection=f"{__name__}:from_connection",
)

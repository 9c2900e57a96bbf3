"""The kinds of stores, by the scheme of `store.url`: those of this package, and those of installed distributions.

A distribution adds a store with an entry point of the group `kafka_archiver.stores`. The entry point's name is the
scheme; its value is a :class:`StoreType`. Install the distribution on the Spark executors too: objects are written
there. It cannot replace a store of this package. Pure: no store's library is imported here.
"""

from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any

from kafka_archiver.messages.entry_points import AddedNames
from kafka_archiver.messages.errors import ConfigError

_ADDED = AddedNames("kafka_archiver.stores", "store.url")


@dataclass(frozen=True, slots=True)
class StoreType:
    """A kind of store, as the YAML, Airflow and the job see it. Nothing else asks for its scheme.

    Functions are `module:function`, imported when they are needed. `opener` opens a `store.base.Store` of the name
    behind the scheme, the prefix, the options and a `store.retry.Backoff`, and sends no request. `check` raises
    ConfigError for wrong options. `example`: of a URL. `connections`: the types of Airflow connections that it takes.
    `connection`: the id if the YAML names none. `from_connection` turns a connection, and its name in messages, into
    options. `is_s3`: the YAML's keys of S3 are for it; others have `store.connection`.
    """

    scheme: str
    opener: str
    check: str
    example: str
    connections: tuple[str, ...]
    connection: str
    from_connection: str
    is_s3: bool = False


_S3 = StoreType(
    "s3",
    opener="kafka_archiver.store.s3:open_s3",
    check="kafka_archiver.store.options:S3Options.parse",
    example="s3://bucket/prefix",
    connections=("aws",),
    connection="aws_default",
    from_connection="kafka_archiver.orchestration.connections.aws:aws_options",
    is_s3=True,
)
_AZURE = StoreType(
    "az",
    opener="kafka_archiver.store.azure:open_azure",
    check="kafka_archiver.store.azure:AzureOptions.parse",
    example="az://container/prefix",
    connections=("wasb",),
    connection="wasb_default",
    from_connection="kafka_archiver.store.azure:options_of_connection",
)
# For tests: it takes the options of S3, and ignores them.
_MEMORY = replace(
    _S3, scheme="memory", opener="kafka_archiver.store.memory:open_memory", example="memory://name/prefix"
)
# Not entry points: an executor may have this package as a zip, without its metadata.
_OWN = {own.scheme: own for own in (_S3, _AZURE, _MEMORY)}


@cache
def store_type(scheme: str) -> StoreType:
    """Return the kind of store of a scheme.

    :raises ConfigError: no distribution adds it, two do, or it cannot be loaded.
    """
    if scheme in _OWN:
        return _OWN[scheme]
    loaded, place = _ADDED.load(scheme, _OWN)
    if not isinstance(loaded, StoreType):
        raise ConfigError(f"store.url: expected a StoreType at {place}, found {type(loaded).__name__}")
    return loaded


def store_of(url: str) -> StoreType:
    """Return the kind of store of a URL. Raises ConfigError as `store_type`."""
    return store_type(url.partition("://")[0])


def is_scheme(scheme: str) -> bool:
    """Return True if there is a store of this scheme."""
    return scheme in _OWN or scheme in _ADDED.with_own(_OWN)


def examples() -> str:
    """Return the forms of URLs, but that for tests."""
    schemes = (scheme for scheme in _ADDED.with_own(_OWN) if scheme != "memory")
    return " or ".join(store_type(scheme).example for scheme in schemes)


def function_of(place: str) -> Any:
    """Import `module:function` or `module:Class.method`."""
    module, _, function = place.partition(":")
    return attrgetter(function)(import_module(module))

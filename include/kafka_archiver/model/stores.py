"""The kinds of stores, by the scheme of `store.url`: those of this package, and those of installed distributions.

A distribution adds a store with an entry point of the group `kafka_archiver.stores`. The entry point's name is the
scheme; its value is a :class:`StoreType`. Install the distribution on the Spark executors too: objects are written
there. It cannot replace a store of this package. Pure: no store's library is imported here.
"""

from dataclasses import dataclass, replace
from functools import cache

from kafka_archiver.messages.entry_points import Registry


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
    check="kafka_archiver.store.azure_options:AzureOptions.parse",
    example="az://container/prefix",
    connections=("wasb",),
    connection="wasb_default",
    from_connection="kafka_archiver.store.azure_options:options_of_connection",
)
# For tests: it takes the options of S3, and ignores them.
_MEMORY = replace(
    _S3, scheme="memory", opener="kafka_archiver.store.memory:open_memory", example="memory://name/prefix"
)
STORES = Registry("kafka_archiver.stores", "store.url", {own.scheme: own for own in (_S3, _AZURE, _MEMORY)}, StoreType)


@cache
def store_of(url: str) -> StoreType:
    """Return the kind of store of a URL. Raises ConfigError if there is none of its scheme."""
    return STORES.get(url.partition("://")[0])


def examples() -> str:
    """Return the forms of URLs, but that for tests."""
    return " or ".join(STORES.get(scheme).example for scheme in STORES.names() if scheme != _MEMORY.scheme)

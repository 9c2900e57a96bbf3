"""The keys of encryption, from Airflow's connections. Logs mask them."""

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.connections.hidden import hidden
from kafka_archiver.orchestration.connections.lookup import Wanted, find

_KIND = ("generic",)


def customer_key(archive: Archive) -> dict[str, str]:
    """The key of SSE-C as an option of the store; empty for another encryption. Raises ConfigError."""
    own = archive.store.encryption.sse_c
    if own is None:
        return {}
    return {"sse_customer_secret": _secrets(Wanted(own.connection, "store.encryption.sse-c.connection", _KIND))[0]}


def master_keys(archive: Archive) -> dict[str, str]:
    """The `master_keys` of endpoints; empty if objects are not encrypted before they are sent. Raises ConfigError."""
    own = archive.store.encryption.client
    if own is None:
        return {}
    if found := own.remote:
        previous = own.previous and _secrets(Wanted(own.previous, "store.encryption.client.previous", _KIND))
    else:
        wanted = Wanted(own.connection or "", "store.encryption.client.connection", _KIND)
        secret, *previous = _secrets(wanted)
        found = {"secret": secret}
    return {**found, **({"previous_secrets": " ".join(previous)} if previous else {})}


def _secrets(wanted: Wanted) -> list[str]:
    """The password of a connection, and what its extra has in `previous_secrets`, a list.

    :raises ConfigError: there is no password, or the extra is something else.
    """
    connection = find(wanted)
    if not connection.password:
        raise ConfigError(
            f"{wanted} has no password; expected 32 random bytes in base64, as from `openssl rand -base64 32`"
        )
    previous = connection.extra_dejson.get("previous_secrets", [])
    if not isinstance(previous, list) or not all(isinstance(text, str) for text in previous):
        raise ConfigError(f"{wanted} has `previous_secrets` in its extra that is not a list of texts")
    # Masked one by one: each may appear alone.
    return [hidden({"secret": text})["secret"] for text in (connection.password, *previous)]

"""Secret keys from Airflow's connections, of transforms and of encryption. Logs mask them."""

from airflow.sdk.log import mask_secret

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.connections.lookup import NamedConnection, find_connection, mask_secrets

# Of fewer, somebody who knows a hash or the fingerprint could try all.
SHORTEST = 16
_KIND = ("generic",)


def transform_keys(archive: Archive) -> dict[str, str]:
    """Return the keys by the ids of their connections. From then on logs mask them.

    :raises ConfigError: a connection is missing, of another type, or has no password that is long enough.
    """
    transform = archive.transform.transform
    return {name: _key(name) for name in sorted(transform.keys)} if transform else {}


def _key(name: str) -> str:
    reference = NamedConnection(name, "transform.steps: hash", _KIND)
    key = find_connection(reference).password or ""
    if len(key) < SHORTEST:
        raise ConfigError(
            f"{reference} has a password of {len(key)} characters; expected at least {SHORTEST}, the key of the "
            "hashes, for example from `openssl rand -hex 32`"
        )
    mask_secret(key)
    return key


def customer_key(archive: Archive) -> dict[str, str]:
    """Return the key of SSE-C as an option of the store; empty for another encryption. Raises ConfigError."""
    own = archive.store.encryption.sse_c
    if own is None:
        return {}
    reference = NamedConnection(own.connection, "store.encryption.sse-c.connection", _KIND)
    return {"sse_customer_secret": _secrets(reference)[0]}


def master_keys(archive: Archive) -> dict[str, str]:
    """Return the `master_keys` of endpoints; empty without encryption before the store. Raises ConfigError."""
    own = archive.store.encryption.client
    if own is None:
        return {}
    if keys := own.remote:
        previous = own.previous and _secrets(NamedConnection(own.previous, "store.encryption.client.previous", _KIND))
    else:
        reference = NamedConnection(own.connection or "", "store.encryption.client.connection", _KIND)
        secret, *previous = _secrets(reference)
        keys = {"secret": secret}
    return {**keys, **({"previous_secrets": " ".join(previous)} if previous else {})}


def _secrets(reference: NamedConnection) -> list[str]:
    """Return the password of a connection, and the list `previous_secrets` of its extra.

    :raises ConfigError: there is no password, or the extra is something else.
    """
    connection = find_connection(reference)
    if not connection.password:
        raise ConfigError(
            f"{reference} has no password; expected 32 random bytes in base64, as from `openssl rand -base64 32`"
        )
    previous = connection.extra_dejson.get("previous_secrets", [])
    if not isinstance(previous, list) or not all(isinstance(text, str) for text in previous):
        raise ConfigError(f"{reference} has `previous_secrets` in its extra that is not a list of texts")
    # Masked one by one: each may appear alone.
    return [mask_secrets({"secret": text})["secret"] for text in (connection.password, *previous)]

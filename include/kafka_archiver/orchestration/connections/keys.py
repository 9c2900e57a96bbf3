"""The secret keys of an archive's transforms: passwords of Airflow connections."""

from airflow.sdk.log import mask_secret

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.connections.lookup import NamedConnection, find_connection

# Of fewer, somebody who knows a hash or the fingerprint could try all.
SHORTEST = 16


def transform_keys(archive: Archive) -> dict[str, str]:
    """Return the keys by the ids of their connections. From then on logs mask them.

    :raises ConfigError: a connection is missing, of another type, or has no password that is long enough.
    """
    transform = archive.transform.transform
    return {name: _key(name) for name in sorted(transform.keys)} if transform else {}


def _key(name: str) -> str:
    reference = NamedConnection(name, "transform.steps: hash", ("generic",))
    key = find_connection(reference).password or ""
    if len(key) < SHORTEST:
        raise ConfigError(
            f"{reference} has a password of {len(key)} characters; expected at least {SHORTEST}, the key of the "
            "hashes, for example from `openssl rand -hex 32`"
        )
    mask_secret(key)
    return key

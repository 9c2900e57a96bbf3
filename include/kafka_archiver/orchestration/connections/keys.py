"""The secret keys of an archive's transforms: passwords of Airflow connections."""

from airflow.sdk.log import mask_secret

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.connections.lookup import Wanted, find

# Of fewer, somebody who knows a hash or the fingerprint could try all.
SHORTEST = 16


def transform_keys(archive: Archive) -> dict[str, str]:
    """The keys by the ids of their connections. From now on logs mask them.

    :raises ConfigError: a connection is missing, of another type, or has no password that is long enough.
    """
    told = archive.transform.transform
    return {name: _key(name) for name in sorted(told.keys)} if told else {}


def _key(name: str) -> str:
    wanted = Wanted(name, "transform.steps: hash", ("generic",))
    key = find(wanted).password or ""
    if len(key) < SHORTEST:
        raise ConfigError(
            f"{wanted} has a password of {len(key)} characters; expected at least {SHORTEST}, the key of the hashes, "
            "for example from `openssl rand -hex 32`"
        )
    mask_secret(key)
    return key

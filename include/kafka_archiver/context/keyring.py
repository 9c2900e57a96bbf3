"""The master keys of an archive, from the endpoints."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.store.options import S3Options

if TYPE_CHECKING:
    # Not at runtime: without encryption nobody needs the library.
    from kafka_archiver.encryption import Keyring
    from kafka_archiver.encryption.masters import Master

SECRET, PREVIOUS, KMS = "secret", "previous_secrets", "kms_key_id"


def keyring_of(endpoints: Endpoints) -> "Keyring | None":
    """Return the master keys; None if the endpoints have none. Makes no request.

    `master_keys` of the endpoints: `secret`, 32 bytes in base64, or `kms_key_id`; and `previous_secrets`, those before
    it, with spaces between.

    :raises ConfigError: they are something else. The message shows no secret.
    """
    keys = endpoints.master_keys
    if not keys:
        return None
    if unknown := sorted(set(keys) - {SECRET, PREVIOUS, KMS}):
        raise ConfigError(
            f"master_keys of the endpoints: unknown {', '.join(unknown)}; expected {SECRET}, {PREVIOUS}, {KMS}"
        )
    if bool(keys.get(SECRET)) == bool(keys.get(KMS)):
        raise ConfigError(f"master_keys of the endpoints: expected {SECRET} or {KMS}, and only one of them")
    from kafka_archiver.encryption.masters import Keyring, LocalMaster

    local = [keys[SECRET]] if keys.get(SECRET) else []
    local += keys.get(PREVIOUS, "").split()
    own = [LocalMaster.parse(text, f"master key {n} of {len(local)}") for n, text in enumerate(local, start=1)]
    of_kms = _of_kms(keys, endpoints.store)
    return Keyring([of_kms, *own] if keys.get(KMS) else [*own, of_kms])


def _of_kms(keys: Mapping[str, str], options: Mapping[str, str]) -> "Master":
    # Imported late: it loads boto3.
    from kafka_archiver.store.kms import KmsMaster

    # Without a key of its own it still opens what a key of KMS has wrapped before.
    return KmsMaster(keys.get(KMS, ""), S3Options.parse(options))

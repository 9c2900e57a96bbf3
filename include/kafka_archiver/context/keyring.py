"""The master keys of an archive, from the endpoints."""

from importlib import import_module
from typing import TYPE_CHECKING

from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.data_keys import MASTERS

if TYPE_CHECKING:
    # Not at runtime: without encryption nobody needs the library.
    from kafka_archiver.encryption import Keyring
    from kafka_archiver.encryption.masters import MasterClass

SECRET, PREVIOUS = "secret", "previous_secrets"


def keyring_of(endpoints: Endpoints) -> "Keyring | None":
    """Return the master keys; None if the endpoints have none. Makes no request.

    `master_keys` of the endpoints: one key of `MASTERS`, as `secret` or `kms_key_id`, the master key that wraps; and
    `previous_secrets`, the values of `secret` before it, with spaces between.

    :raises ConfigError: they are something else. The message shows no secret.
    """
    keys = endpoints.master_keys
    if not keys:
        return None
    if unknown := sorted(set(keys) - {PREVIOUS, *MASTERS}):
        expected = ", ".join((SECRET, PREVIOUS, *(name for name in MASTERS if name != SECRET)))
        raise ConfigError(f"master_keys of the endpoints: unknown {', '.join(unknown)}; expected {expected}")
    chosen = [name for name in MASTERS if keys.get(name)]
    if len(chosen) != 1:
        raise ConfigError(f"master_keys of the endpoints: expected {' or '.join(MASTERS)}, and only one of them")
    from kafka_archiver.encryption.masters import Keyring

    [name] = chosen
    texts = [(name, keys[name]), *((SECRET, text) for text in keys.get(PREVIOUS, "").split())]
    masters = [_class_of(kind).parse(text, _place(texts, n), endpoints.store) for n, (kind, text) in enumerate(texts)]
    # These open what any of their keys has wrapped before, without a key of their own.
    keyless = [cls for other in MASTERS if other != name and (cls := _class_of(other)).opens_without_key]
    return Keyring([*masters, *(cls.parse("", "", endpoints.store) for cls in keyless)])


def _place(texts: list[tuple[str, str]], index: int) -> str:
    """Name a secret in an error by its place among the secrets."""
    secrets = [n for n, (kind, _) in enumerate(texts) if kind == SECRET]
    return f"master key {secrets.index(index) + 1} of {len(secrets)}" if index in secrets else texts[index][0]


def _class_of(name: str) -> "type[MasterClass]":
    """Import the class late: one loads boto3, the other cryptography."""
    module, _, cls = MASTERS[name].partition(":")
    loaded: type[MasterClass] = getattr(import_module(module), cls)
    return loaded

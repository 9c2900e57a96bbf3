"""The master keys of an archive, from the endpoints."""

from typing import TYPE_CHECKING

from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.data_keys import SECRET, master_class, master_names

if TYPE_CHECKING:
    # Not at runtime: without encryption nobody needs the library.
    from kafka_archiver.encryption import Keyring

PREVIOUS = "previous_secrets"


def keyring_of(endpoints: Endpoints) -> "Keyring | None":
    """Return the master keys; None if the endpoints have none. Makes no request.

    `master_keys` of the endpoints: one of `master_names`, as `secret` or `kms_key_id`, the master key that wraps; and
    `previous_secrets`, the values of `secret` before it, with spaces between.

    :raises ConfigError: they are something else. The message shows no secret.
    """
    keys = endpoints.master_keys
    if not keys:
        return None
    names = master_names()
    if unknown := sorted(set(keys) - {PREVIOUS, *names}):
        expected = ", ".join((SECRET, PREVIOUS, *(name for name in names if name != SECRET)))
        raise ConfigError(f"master_keys of the endpoints: unknown {', '.join(unknown)}; expected {expected}")
    chosen = [name for name in names if keys.get(name)]
    if len(chosen) != 1:
        raise ConfigError(f"master_keys of the endpoints: expected {' or '.join(names)}, and only one of them")
    from kafka_archiver.encryption.masters import Keyring

    [name] = chosen
    texts = [(name, keys[name]), *((SECRET, text) for text in keys.get(PREVIOUS, "").split())]
    masters = [
        master_class(kind).parse(text, _place(texts, n), endpoints.store) for n, (kind, text) in enumerate(texts)
    ]
    # These open what any of their keys has wrapped before, without a key of their own.
    keyless = [cls for other in names if other != name and (cls := master_class(other)).opens_without_key]
    return Keyring([*masters, *(cls.parse("", "", endpoints.store) for cls in keyless)])


def _place(texts: list[tuple[str, str]], index: int) -> str:
    """Name a secret in an error by its place among the secrets."""
    secrets = [n for n, (kind, _) in enumerate(texts) if kind == SECRET]
    return f"master key {secrets.index(index) + 1} of {len(secrets)}" if index in secrets else texts[index][0]

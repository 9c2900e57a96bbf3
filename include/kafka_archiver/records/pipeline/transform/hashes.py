"""The step `hash`: HMAC-SHA256 of values, with a secret key that only the job has."""

import hashlib
import hmac
from collections.abc import Mapping

import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.model.transforms import Hash, fingerprint
from kafka_archiver.records.formats.shared.plain_types import LOGICAL
from kafka_archiver.records.formats.shared.texts import decimals, uuids
from kafka_archiver.records.pipeline.transform.paths import Change, Changed

# What has one spelling as text, besides bytes.
_SPELT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean, pa.types.is_integer, pa.types.is_decimal,
          pa.types.is_date32)  # fmt: skip
_UUID = pa.uuid().storage_type
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)


class Digests:
    """The hashes of a step's fields. :param keys: the secret keys by name."""

    def __init__(self, step: Hash, keys: Mapping[str, str]) -> None:
        self._step, self._keys = step, keys
        self._hmac: hmac.HMAC | None = None

    def change(self, prefix: str) -> Change:
        """Return the change of a field. `prefix`: begins the error."""

        def changed(field: pa.Field) -> Changed:
            kind = field.type
            if self._step.rules > 1 and (field.metadata or {}).get(LOGICAL) == b"uuid" and kind == _UUID:
                return pa.field(field.name, pa.string(), field.nullable), self._uuids
            if not (kind == pa.uuid() or any(of(kind) for of in _SPELT + _BYTES)):
                raise ConfigError(
                    f"{prefix}: it is of type {kind}; expected text, bytes, a whole number, a decimal, a date, a UUID, "
                    "true or false"
                )
            return pa.field(field.name, pa.string(), field.nullable), self._array

        return changed

    def _uuids(self, array: pa.Array) -> pa.Array:
        return self._hashed(uuids(array))

    def _array(self, array: pa.Array) -> pa.Array:
        return self._hashed(self._spelt(array))

    def _hashed(self, texts: pa.Array) -> pa.Array:
        digests = [None if text is None else self._digest(text) for text in texts.to_pylist()]
        return pa.array(digests, pa.string())

    def _spelt(self, array: pa.Array) -> pa.Array:
        if array.type == pa.uuid():
            return uuids(array)
        if any(of(array.type) for of in _BYTES):
            return array
        if self._step.rules > 2 and pa.types.is_decimal(array.type):
            return decimals(array)
        return array.cast(pa.string()).cast(pa.binary())

    def _digest(self, value: bytes) -> str:
        if self._hmac is None:
            self._hmac = hmac.new(key_of(self._step, self._keys), digestmod=hashlib.sha256)
        digest = self._hmac.copy()
        digest.update(value)
        return digest.hexdigest()


def key_of(step: Hash, keys: Mapping[str, str]) -> bytes:
    """The secret key of a step of a plan.

    :raises PermanentError: it is not the one that the plan was made with.
    """
    key = keys.get(step.key)
    if key is None:
        raise PermanentError(
            f"transform.steps: hash: the job has no key {step.key!r}; it is the password of the Airflow connection of "
            "that name (on Kubernetes `keys` of the endpoints in the Secret)"
        )
    if (actual := fingerprint(key)) != step.fingerprint:
        raise PermanentError(
            f"transform.steps: hash: the password of the Airflow connection {step.key!r} is another key than the run "
            f"was planned with (its fingerprint is {actual}, the plan's {step.fingerprint}): equal values would get "
            "other hashes. Give the connection its former password"
        )
    return key.encode()

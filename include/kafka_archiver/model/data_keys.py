"""Data keys as values: the key that encrypts a plan's objects, and the document that keeps it wrapped. Pure.

The document never has the key itself, only what a master key has made of it. Its name is derived from the key, so a
document that was damaged, moved or changed gives no other key.
"""

import hashlib
import hmac
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from kafka_archiver.messages.entry_points import Registry, imported
from kafka_archiver.values.documents import ArchiveDocument, UtcTime, Value

LENGTH = 32
# The classes of master keys, by the key of `master_keys` in the endpoints that has the key itself or its name. Their
# places: each loads a library.
_OWN: dict[str, Any] = {
    "secret": "kafka_archiver.encryption.masters:LocalMaster",
    "kms_key_id": "kafka_archiver.store.kms:KmsMaster",
}
_REGISTRY = Registry("kafka_archiver.master_keys", "store.encryption.client", _OWN)
# The key of one that a connection has. All others stay in a service, and `store.encryption.client` has their names.
SECRET = "secret"


def master_names() -> tuple[str, ...]:
    """Return the names of all classes of master keys."""
    return _REGISTRY.names()


def master_class(name: str) -> Any:
    """Return a class of master keys, an `encryption.masters.MasterClass`. Imported late: it loads a library.

    :raises ConfigError: no distribution adds it, two do, or it cannot be loaded.
    """
    cls = _REGISTRY.get(name)
    return imported(cls) if isinstance(cls, str) else cls


class DataKey(NamedTuple):
    """A key of 32 random bytes. It is in memory only; `repr` hides it."""

    secret: bytes

    def __repr__(self) -> str:
        return f"DataKey({self.id})"

    @property
    def id(self) -> str:
        """32 hexadecimal digits, from which nobody can find the key."""
        return hmac.new(self.secret, b"kafka-archiver/data-key", hashlib.sha256).hexdigest()[:32]


class Wrapped(Value):
    """A data key, encrypted by a master key. `master`: the master key's name. `text`: in base64."""

    master: str
    text: str


class DataKeyDocument(ArchiveDocument):
    """The wrapped data key of a plan. A rotation of master keys replaces `wrapped`, and nothing else."""

    document: Literal["kafka-archiver/data-key"] = "kafka-archiver/data-key"
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    created_at: UtcTime
    wrapped: Wrapped

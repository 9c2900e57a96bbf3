"""Master keys: they wrap data keys. A local one is in an Airflow connection; one of KMS never leaves KMS."""

import base64
import binascii
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol, Self

from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.model.data_keys import LENGTH, DataKey, DataKeyDocument, Wrapped


class Master(Protocol):
    """A master key. Both methods raise ArchiverError."""

    def wrap(self, archive: str, key: DataKey) -> Wrapped:
        """Encrypt a data key."""

    def unwrap(self, archive: str, key_id: str, wrapped: Wrapped) -> bytes | None:
        """Decrypt a data key. None: this master key has not encrypted it."""


class MasterClass(Master, Protocol):
    """A class of master keys; `model.data_keys` has a line for each.

    `opens_without_key`: with an empty text, it opens what any key of this class has wrapped.
    """

    opens_without_key: ClassVar[bool]

    @classmethod
    def parse(cls, text: str, where: str, options: Mapping[str, str]) -> Self:
        """Return the master key of a text.

        :param where: the place of the text, for errors. :param options: the store's: addresses and credentials.
        :raises ConfigError: the text is no key. The message does not show it.
        """


@dataclass(frozen=True, slots=True, repr=False)
class LocalMaster:
    """A master key of 32 bytes. AES key wrap, RFC 3394."""

    opens_without_key: ClassVar[bool] = False
    secret: bytes

    @classmethod
    def parse(cls, text: str, where: str, options: Mapping[str, str]) -> Self:  # noqa: ARG003 - the protocol's
        """From base64. Raises ConfigError, without the text."""
        try:
            secret = base64.b64decode(text, validate=True)
        except binascii.Error:
            secret = b""
        if len(secret) != LENGTH:
            raise ConfigError(f"{where}: expected 32 bytes in base64, as from `openssl rand -base64 32`")
        return cls(secret)

    @property
    def name(self) -> str:
        """Tells master keys apart, and shows nothing of them."""
        return f"local:{hashlib.sha256(b'kafka-archiver/master-key' + self.secret).hexdigest()[:16]}"

    def wrap(self, archive: str, key: DataKey) -> Wrapped:  # noqa: ARG002 - the protocol's
        return Wrapped(master=self.name, text=base64.b64encode(aes_key_wrap(self.secret, key.secret)).decode())

    def unwrap(self, archive: str, key_id: str, wrapped: Wrapped) -> bytes | None:  # noqa: ARG002 - the protocol's
        if wrapped.master != self.name:
            return None
        try:
            return aes_key_unwrap(self.secret, base64.b64decode(wrapped.text))
        except (InvalidUnwrap, ValueError):
            return b""


@dataclass(frozen=True, slots=True)
class Keyring:
    """The master keys of an archive. The first one wraps; the others only unwrap what they have wrapped before."""

    masters: Sequence[Master]

    def new(self, archive: str, at: datetime) -> tuple[DataKey, DataKeyDocument]:
        """A new data key, and its document."""
        key = DataKey(secrets.token_bytes(LENGTH))
        wrapped = self.masters[0].wrap(archive, key)
        return key, DataKeyDocument(archive=archive, id=key.id, created_at=at, wrapped=wrapped)

    def open(self, document: DataKeyDocument) -> DataKey:
        """The data key of a document.

        :raises ConfigError: no master key of the connection has wrapped it.
        :raises PermanentError: the document is damaged.
        """
        wrapped = document.wrapped
        tried = (master.unwrap(document.archive, document.id, wrapped) for master in self.masters)
        secret = next((secret_key for secret_key in tried if secret_key is not None), None)
        if secret is None:
            raise ConfigError(
                f"data key {document.id} of archive {document.archive} is wrapped by master key {wrapped.master}, and "
                "`store.encryption.client` names another one: add the earlier secret to `previous_secrets` in the "
                "extra of the connection"
            )
        key = DataKey(secret)
        if key.id != document.id:
            raise PermanentError(
                f"data key {document.id} of archive {document.archive} is damaged: master key {wrapped.master} gives "
                "another key. Restore the document from a version or copy of the store"
            )
        return key

    def rewrapped(self, document: DataKeyDocument) -> DataKeyDocument | None:
        """The document with the same data key, wrapped by the first master key; None: it is that already."""
        key = self.open(document)
        wrapped = self.masters[0].wrap(document.archive, key)
        if wrapped.master == document.wrapped.master:
            return None
        changed = document.model_copy(update={"wrapped": wrapped})
        # Nobody could read the objects again if the new document did not give the key.
        self.open(changed)
        return changed

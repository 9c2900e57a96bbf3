"""A master key in AWS KMS, which wraps data keys. It never leaves KMS."""

import base64
import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from kafka_archiver.messages.errors import ArchiverError, ConfigError, PermanentError, TransientError, kind_in_words
from kafka_archiver.model.data_keys import DataKey, Wrapped
from kafka_archiver.store.options import S3Options
from kafka_archiver.store.retry import Backoff
from kafka_archiver.store.s3_client import session

_PREFIX = "kms:"
_PERMANENT = {
    "AccessDeniedException",
    "DisabledException",
    "IncorrectKeyException",
    "InvalidArnException",
    "InvalidCiphertextException",
    "InvalidGrantTokenException",
    "InvalidKeyUsageException",
    "KMSInvalidStateException",
    "NotFoundException",
    "UnrecognizedClientException",
    "ValidationException",
}


class KmsMaster:
    """A key of KMS. `context` of its requests: the archive and the id of the data key.

    :param key_id: the id, alias or ARN of a symmetric key.
    :param options: the store's: credentials and region; `kms_endpoint_url` for another KMS.
    """

    opens_without_key: ClassVar[bool] = True

    @classmethod
    def parse(cls, text: str, where: str, options: Mapping[str, str]) -> Self:  # noqa: ARG003 - the protocol's
        """Return the key of this id; empty: only opens."""
        # The store may be another one than S3.
        return cls(text, S3Options.parse({name: options[name] for name in S3Options.names() if name in options}))

    def __init__(self, key_id: str, options: S3Options, backoff: Backoff | None = None) -> None:
        self._key_id = key_id
        self._backoff = backoff or Backoff()
        self._options = options

    @functools.cached_property
    def _client(self) -> Any:
        """Made when it is needed: an archive with another master key needs no region."""
        config = Config(connect_timeout=5, read_timeout=30, retries={"total_max_attempts": 1, "mode": "standard"})
        try:
            return session(self._options).client("kms", endpoint_url=self._options.kms_endpoint_url, config=config)
        except (BotoCoreError, ValueError) as error:
            # Raised before any request: the text names a profile, region or endpoint, no secret.
            raise ConfigError(f"KMS cannot be used with the store's connection: {error}") from None

    def wrap(self, archive: str, key: DataKey) -> Wrapped:
        """Encrypt a data key. Raises ArchiverError."""
        answer = self._ask("encrypt", KeyId=self._key_id, Plaintext=key.secret, **_context(archive, key.id))
        text = base64.b64encode(answer["CiphertextBlob"]).decode()
        return Wrapped(master=f"{_PREFIX}{answer['KeyId']}", text=text)

    def unwrap(self, archive: str, key_id: str, wrapped: Wrapped) -> bytes | None:
        """Decrypt a data key, by whatever key of KMS has encrypted it. None: none has. Raises ArchiverError."""
        if not wrapped.master.startswith(_PREFIX):
            return None
        own = wrapped.master.removeprefix(_PREFIX)
        blob = base64.b64decode(wrapped.text)
        answer = self._ask("decrypt", KeyId=own, CiphertextBlob=blob, **_context(archive, key_id))
        return bytes(answer["Plaintext"])

    def _ask(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        call: Callable[..., Mapping[str, Any]] = getattr(self._client, operation)

        def attempt() -> Mapping[str, Any]:
            try:
                return call(**parameters)
            except (BotoCoreError, ClientError, OSError) as error:
                # Not the error itself: its text may have a session token.
                raise _explained(error, operation, str(parameters["KeyId"])) from None

        return self._backoff.run(attempt)


def _context(archive: str, key_id: str) -> dict[str, Any]:
    return {"EncryptionContext": {"archive": archive, "data-key": key_id}}


def _explained(error: Exception, operation: str, key_id: str) -> ArchiverError:
    code = str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""
    message = f"KMS did not {operation} with key {key_id}: {code or kind_in_words(error)}"
    if code in _PERMANENT:
        return PermanentError(
            f"{message}. Expected an enabled symmetric key in store.encryption.client.kms_key_id, and credentials in "
            "store.aws with kms:Encrypt and kms:Decrypt on it"
        )
    return TransientError(message)

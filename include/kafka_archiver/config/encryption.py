"""`store.encryption`: how objects and documents are encrypted."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from kafka_archiver.config.properties import ConnectionId
from kafka_archiver.config.section import Section
from kafka_archiver.messages.secrets import SECRET
from kafka_archiver.model.data_keys import SECRET as IN_CONNECTION
from kafka_archiver.model.data_keys import master_names

_PLAIN: dict[str, dict[str, Any]] = {"none": {}, "sse-s3": {"sse-s3": True}, "sse-kms": {"sse-kms": {}}}
_EXPECTED = "none, sse-s3, sse-kms, or a mapping with only one of sse-kms, sse-c and client"


class SseKms(Section):
    """Encryption by the store with a key of KMS. Without `key_id`: the account's own key for S3."""

    key_id: Annotated[str, Field(min_length=1)] | None = None
    bucket_key: bool = False
    context: dict[str, str] = Field(default={})


class SseC(Section):
    """Encryption by the store with a key that each request brings. `connection`: the key is its password."""

    connection: ConnectionId


def _remote_text() -> str:
    return " or ".join(f"`{name}`" for name in master_names() if name != IN_CONNECTION)


def _is_remote(name: str) -> str:
    if name == IN_CONNECTION or name not in master_names():
        raise PydanticCustomError("extra_forbidden", "no key")
    return name


class Client(Section):
    """Encryption before the store. The master key: the password of a connection, or a key of KMS or another service.

    Without `encrypt`, the master key opens what earlier plans have encrypted.
    """

    model_config = ConfigDict(extra="allow")
    # The key of a service that another distribution adds.
    __pydantic_extra__: dict[Annotated[str, AfterValidator(_is_remote)], Annotated[str, Field(min_length=1)]]
    connection: ConnectionId | None = None
    kms_key_id: Annotated[str, Field(min_length=1)] | None = None
    previous: ConnectionId | None = None
    encrypt: bool = True

    @model_validator(mode="after")
    def _one_master(self) -> Self:
        if len([value for value in (self.connection, *self.remote.values()) if value]) != 1:
            raise ValueError(f"`connection` or {_remote_text()}, and only one of them: the master key")
        if self.previous and not self.remote:
            raise ValueError(
                f"`previous` only beside {_remote_text()}: a connection has `previous_secrets` in its extra"
            )
        return self

    @property
    def remote(self) -> dict[str, str]:
        """The master key that stays in a key service, by the name of its field; empty for one in a connection."""
        remote = {"kms_key_id": self.kms_key_id, **self.__pydantic_extra__}
        return {name: key for name, key in remote.items() if key}


class Encryption(Section):
    """At most one way of encryption."""

    model_config = ConfigDict(populate_by_name=True)

    sse_s3: Annotated[Literal[True] | None, Field(alias="sse-s3")] = None
    sse_kms: Annotated[SseKms | None, Field(alias="sse-kms")] = None
    sse_c: Annotated[SseC | None, Field(alias="sse-c")] = None
    client: Client | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_way(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value not in _PLAIN:
                # The key itself may stand here by mistake.
                raise PydanticCustomError(SECRET, "{expected}", {"expected": _EXPECTED})
            return _PLAIN[value]
        if isinstance(value, dict):
            named = {way: options for way, options in value.items() if options is not None}
            # All ways without a value are an Encryption as it is dumped; one without a value is a mistake.
            if len(named) > 1 or (not named and len(value) < len(cls.model_fields)):
                raise ValueError(f"expected {_EXPECTED}")
            return named
        return value

    def has(self, way: str) -> bool:
        """Return True if it is this way, as the YAML names it."""
        return getattr(self, way.replace("-", "_")) is not None


NO_ENCRYPTION = Encryption.model_validate("none")

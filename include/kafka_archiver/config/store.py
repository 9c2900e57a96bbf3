"""`store`: where and how objects are written, also how many offsets a chunk has (`chunk_records`)."""

import json
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlencode

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from kafka_archiver.config.encryption import NO_ENCRYPTION, Encryption
from kafka_archiver.config.properties import ConnectionOrProperties, Options, store_url, without_credentials
from kafka_archiver.config.section import Section
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.layouts.registry import LAYOUTS, form_of, named, names
from kafka_archiver.model.settings import CHUNK_RECORDS, METADATA, Content, Metadata, Settings
from kafka_archiver.model.stores import store_of

Name = Annotated[str, Field(min_length=1)]


def _layout(layout: Any) -> Any:
    if not isinstance(layout, str | dict):
        raise ValueError(f"expected {' | '.join(names())}, or a mapping")
    # Asking for entry points takes time, and Airflow parses all archives again and again.
    if isinstance(layout, str) and layout not in LAYOUTS and layout not in names():
        raise ValueError(f"expected {' | '.join(names())}")
    try:
        name, options = named(layout)
        form_of(Settings(layout=name, layout_options=options))
    except ConfigError as error:
        message = str(error).removeprefix("store.layout: ")
        raise ValueError(message if message.startswith(("`", "expected ")) else f"another layout: {message}") from None
    return layout


def _in_order(names: tuple[Metadata, ...]) -> tuple[Metadata, ...]:
    if len(set(names)) != len(names):
        raise ValueError("expected each column only once")
    return tuple(name for name in METADATA if name in names)


def _to_distinct(names: dict[str, str]) -> dict[str, str]:
    if len({name.lower() for name in names.values()}) != len(names):
        raise ValueError("expected a different new name for each column, whatever the case of its letters")
    return names


_OF_S3 = ("aws", "storage_class", "acl", "requester_pays", "bucket_owner")
# Objects of these classes cannot be read before somebody restores them.
_COLD = ("GLACIER", "DEEP_ARCHIVE")
Acl = Literal[
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "aws-exec-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
]


def _readable(storage_class: str) -> str:
    if storage_class in _COLD:
        raise ValueError(
            "expected a class whose objects can be read at once: repairs, audits and replays read them. For others, "
            "have a lifecycle rule move the objects later"
        )
    return storage_class


def _few(tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > 10 or any(not 0 < len(name) <= 128 or len(value) > 256 for name, value in tags.items()):
        raise ValueError("expected at most 10 tags, with names of at most 128 and values of at most 256 characters")
    return tags


class StoreSection(Section):
    """Where and how objects are written."""

    url: Annotated[str, BeforeValidator(store_url)]
    aws: Annotated[ConnectionOrProperties, BeforeValidator(without_credentials("endpoint_url", "http://host:port"))] = (
        "aws_default"
    )
    # Of a store that is not S3.
    connection: ConnectionOrProperties | None = Field(default=None, exclude_if=lambda connection: connection is None)
    layout: Annotated[str | dict[str, Any], BeforeValidator(_layout)] = "hourly"
    name: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    # Paths that one chunk may have.
    max_paths: Annotated[int, Field(gt=0, le=1_000_000)] = 10_000
    format: str = "jsonl"
    content: Content = "value"
    metadata: Annotated[tuple[Metadata, ...], AfterValidator(_in_order)] = ()
    # Letters, digits and _: Avro takes no other names.
    metadata_prefix: Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")] = ""
    rename: Annotated[dict[Name, Name], AfterValidator(_to_distinct)] = Field(default={})
    codec: str | None = None
    # The format's own options: `records.formats.registry.resolve` checks them, as this module knows no format.
    options: Options = Field(default={})
    chunk_records: Annotated[int, Field(gt=0, le=100_000_000)] = CHUNK_RECORDS
    part_bytes: Annotated[int, Field(ge=5 << 20, le=1 << 30)] = 8 << 20
    encryption: Encryption = NO_ENCRYPTION
    storage_class: Annotated[str, Field(pattern=r"^[A-Z0-9_]+$"), AfterValidator(_readable)] | None = None
    tags: Annotated[dict[str, str], AfterValidator(_few)] = Field(default={})
    acl: Acl | None = None
    requester_pays: bool = False
    bucket_owner: Annotated[str, Field(pattern=r"^[0-9]{12}$")] | None = None

    @model_validator(mode="after")
    def _has_keys_of_its_kind(self) -> Self:
        kind = store_of(self.url)
        if kind.is_s3:
            if self.connection is not None:
                raise ValueError("no `connection` beside an s3:// URL; `store.aws` names the connection of S3")
            return self
        of_s3 = [name for name in _OF_S3 if getattr(self, name) != type(self).model_fields[name].default]
        of_s3 += [f"encryption.{way}" for way in ("sse-s3", "sse-kms", "sse-c") if self.encryption.has(way)]
        if self.tags:
            of_s3.append("tags")
        if of_s3:
            names = ", ".join(f"`{name}`" for name in of_s3)
            raise ValueError(f"nothing of S3 beside {kind.scheme}://; remove {names}")
        return self

    @property
    def named_connection(self) -> tuple[str, str | dict[str, Any]]:
        """The key of the YAML with the store's connection, and the connection: its id, or the properties."""
        kind = store_of(self.url)
        if kind.is_s3:
            return "store.aws", self.aws
        return "store.connection", self.connection or kind.connection

    @property
    def requests(self) -> dict[str, str]:
        """Return the parameters that requests get, as options of the store. Without secrets."""
        encryption, kms = self.encryption, self.encryption.sse_kms
        options = {
            "sse": "AES256" if encryption.sse_s3 else "aws:kms" if kms else None,
            "sse_kms_key_id": kms and kms.key_id,
            "sse_kms_context": json.dumps(kms.context, sort_keys=True) if kms and kms.context else None,
            "sse_bucket_key": "true" if kms and kms.bucket_key else None,
            "sse_customer": "true" if encryption.sse_c else None,
            "storage_class": self.storage_class,
            "tags": urlencode(self.tags),
            "acl": self.acl,
            "requester_pays": "true" if self.requester_pays else None,
            "bucket_owner": self.bucket_owner,
        }
        return {name: value for name, value in options.items() if value}

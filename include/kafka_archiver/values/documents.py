"""Immutable values that are also JSON documents: one dialect for every file in the ledger.

Bytes are a function of the value alone (field order as declared, UTC times, two-space indent, final newline),
so that the same value always has the same checksum.
"""

import gzip
import hashlib
import re
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, PrivateAttr, ValidationError

from kafka_archiver.messages.errors import DocumentError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.values.ranges import TopicPartition

# How gzip's bytes begin; no JSON does.
GZIP = b"\x1f\x8b"
# How a document with a digest of its content ends, also if somebody has written it in other lines.
_CONTENT_DIGEST = re.compile(rb',\s*"content_digest":\s*"([^"]*)"\s*\}\s*\Z')


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a time needs a zone, for example 2026-11-21T05:00:00Z")
    try:
        utc = moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("no such time in UTC: dates go from year 1 to 9999") from error
    # Airflow's times are a subclass of datetime whose arithmetic breaks to_ms.
    return datetime.combine(utc.date(), utc.time(), UTC)


def isoformat(moment: datetime) -> str:
    """RFC 3339 in UTC, with as many decimals as it needs: 2026-11-21T05:00:00Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


Count = Annotated[int, Field(ge=0, lt=1 << 63)]
# Of an object: 1 PiB, so that SQLite can add the sizes of thousands.
Size = Annotated[int, Field(gt=0, le=1 << 50)]
UtcTime = Annotated[datetime, AfterValidator(_in_utc), PlainSerializer(isoformat, return_type=str)]


def unwritten(default: Any) -> Any:
    """Return a field that no JSON has while it is the default: such a document keeps the bytes that it had before there
    was the field, and an older release can read it.
    """
    return Field(default=default, exclude_if=lambda value: value == default)


class Value(BaseModel):
    """A frozen value with named fields; an unknown field is an error."""

    # Built on first use: a process uses a few of a hundred models, and building all takes a tenth of a CPU second.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class PartitionValue(Value):
    """A value that says something of one partition, which its first fields name."""

    topic: str
    partition: Count

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Document(Value):
    """A value that is stored as a JSON file of its own.

    :cvar LARGE: longer JSON is stored as gzip; None: never.
    :cvar DIGESTS_CONTENT: it is stored with `content_digest`, the digest of all before it, because no other document
        has its digest. Those that 1.0.0 and earlier releases wrote have none.
    """

    LARGE: ClassVar[int | None] = None
    DIGESTS_CONTENT: ClassVar[bool] = False
    _stored: bytes | None = PrivateAttr(default=None)

    def to_json(self) -> bytes:
        """The document's JSON without `content_digest`: UTF-8, deterministic, ending in a newline."""
        # The json module makes the same bytes, but needs five times the time and memory for large manifests.
        return self.model_dump_json(indent=2).encode() + b"\n"

    def to_bytes(self) -> bytes:
        """Return the bytes to store: the JSON, or gzip of it without a time, if it is large."""
        data = self._stored_json()
        return data if self.LARGE is None or len(data) <= self.LARGE else gzip.compress(data, 6, mtime=0)

    def _stored_json(self) -> bytes:
        data = self.to_json()
        if not self.DIGESTS_CONTENT:
            return data
        return data.removesuffix(b"\n}\n") + f',\n  "content_digest": "{_sha256(data)}"\n}}\n'.encode()

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Self:
        """Read a document.

        :param data: as `to_bytes` gives it: JSON, or gzip of it.
        :param name: the document's place, for messages.
        :raises DocumentError: the data is not JSON, or not this kind of document, or was changed.
        """
        try:
            data = gzip.decompress(data) if data.startswith(GZIP) else data
        except (EOFError, OSError, zlib.error) as error:
            raise cls._unreadable(name, f"not gzip: {error}") from error
        content = data
        if cls.DIGESTS_CONTENT and (end := _CONTENT_DIGEST.search(data)):
            content = data[: end.start()] + b"\n}\n"
            if _sha256(content) != end[1].decode(errors="replace"):
                raise cls._unreadable(name, "its content was changed: `content_digest` is of another one")
        try:
            document = cls.model_validate_json(content, strict=True)
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'document'}: {e['msg']}" for e in error.errors()[:5])
            raise cls._unreadable(name, faults) from error
        # Keep the bytes: digests in other documents are of them, and a later release may have more fields.
        document._stored = data
        return document

    @classmethod
    def _unreadable(cls, name: str, faults: str) -> DocumentError:
        return DocumentError(
            f"{name} is not a readable {cls.__name__.lower()} document: {foreign(faults, 1000)}. "
            "It was damaged or written by another version; restore it from a backup of the store"
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the document's JSON in hex: the bytes that were read, else those that will be written."""
        return _sha256(self._stored or self._stored_json())

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A changed copy, without the bytes that were read."""
        copy = super().model_copy(update=update, deep=deep)
        copy._stored = None
        return copy

    # Equal values are equal documents, whatever bytes were read.
    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(self.to_json())


class ArchiveDocument(Document):
    """A document of an archive. `document`: what it is; each kind has a value of its own."""

    document: str
    version: Literal[1] = 1
    archive: str

"""The interface of an object store."""

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO, NamedTuple, Protocol

from kafka_archiver.messages.errors import TransientError
from kafka_archiver.values.checksum import joined, spelt

# S3's limits for the parts of an upload: smallest size (except the last part; checked when the upload is completed),
# largest size, and number.
MIN_PART, MAX_PART = 5 << 20, 5 << 30
MAX_PARTS = 10_000


# The content of a part: bytes, or a file from its beginning.
Body = bytes | BinaryIO
_PIECE = 1 << 20
MD5 = re.compile(r"[0-9a-f]{32}")


def pieces(data: Body) -> Iterator[bytes]:
    """All bytes in order; of a file, only one piece at a time is in memory."""
    if isinstance(data, bytes):
        yield data
    else:
        data.seek(0)
        yield from iter(lambda: data.read(_PIECE), b"")


class Stat(NamedTuple):
    """The store's metadata of an object. `etag` is without quotes; `modified` is in UTC by the store's clock.

    `checksum`: the CRC-32 of its bytes, spelt as in documents; None in listings, or if the store has no checksum.
    """

    key: str
    size: int
    etag: str
    modified: datetime
    checksum: str | None = None


class StoredObject(NamedTuple):
    """An object's bytes, and their ETag for `Store.replace`."""

    data: bytes
    etag: str


class UploadedPart(NamedTuple):
    """One uploaded part: the store's ETag of it, and the CRC-32 and size computed before it was sent."""

    etag: str
    crc32: int
    size: int


class PendingUpload(NamedTuple):
    """A multipart upload. The object is invisible until the upload is completed with its parts. Picklable.

    `checked`: the store compares each part, and the whole object, with our CRC-32.
    """

    key: str
    upload_id: str
    parts: tuple[UploadedPart, ...] = ()
    checked: bool = False

    @property
    def size(self) -> int:
        """Bytes in all parts."""
        return sum(p.size for p in self.parts)

    @property
    def crc32(self) -> int:
        """The CRC-32 of the whole object."""
        return joined((p.crc32, p.size) for p in self.parts)

    @property
    def checksum(self) -> str:
        """The CRC-32, spelt as in documents."""
        return spelt(self.crc32)

    @property
    def md5_etag(self) -> str:
        """The object's ETag if ETags are MD5s: the MD5 of the parts' MD5s, a dash, the number of parts. Else empty."""
        if not all(MD5.fullmatch(p.etag) for p in self.parts):
            return ""
        digest = hashlib.md5(b"".join(bytes.fromhex(p.etag) for p in self.parts), usedforsecurity=False)
        return f"{digest.hexdigest()}-{len(self.parts)}"


def upload_gone(url: str, key: str) -> TransientError:
    """The error for an upload that was completed or aborted elsewhere. The object has to be written again."""
    return TransientError(
        f"{url}: the upload of {key} is gone, and no object with its parts exists: another attempt or a lifecycle "
        "rule aborted it. The next attempt of the task writes the object again"
    )


class Store(Protocol):
    """Objects below one URL; keys are relative to it. Safe to use from several threads.

    Every method retries transient failures (exponential backoff with full jitter), then raises
    :class:`~kafka_archiver.messages.errors.TransientError`. It raises
    :class:`~kafka_archiver.messages.errors.PermanentError` (missing bucket, access denied, …) at once.
    """

    url: str

    def get(self, key: str) -> bytes | None:
        """The object's bytes; None when there is no such object."""

    def read(self, key: str, start: int, length: int) -> bytes | None:
        """`length` bytes of the object from `start`, fewer at its end; None when there is no such object."""

    def head(self, key: str) -> Stat | None:
        """The object's metadata; None when there is no such object."""

    def put(self, key: str, data: bytes) -> str:
        """Write or replace an object. Returns its ETag."""

    def create(self, key: str, data: bytes) -> bool:
        """Write an object unless it exists. False, and nothing written, if it exists.

        If an answer was lost and the store answers the retry with "exists", the stored bytes decide: True if they are
        `data`.
        """

    def version(self, key: str) -> StoredObject | None:
        """The object's bytes with their ETag; None when there is no such object."""

    def replace(self, key: str, data: bytes, etag: str) -> bool:
        """Replace an object only if it has this ETag. False, and nothing written, if not.

        After a lost answer: as `create`.
        """

    def now(self) -> datetime:
        """The time by the store's clock, UTC, to the second."""

    def list(self, prefix: str) -> Iterator[Stat]:
        """All objects whose key starts with `prefix`, each once, in the server's order.

        S3 lists by key. Other servers list like a file system (`a/x` before `a-b`): sort if the order matters.
        """

    def delete(self, key: str) -> None:
        """Remove an object; no error if it does not exist."""

    def delete_version(self, key: str, etag: str) -> bool:
        """Remove an object only if it has this ETag. False, and nothing removed, if it has another one; True if there
        is none any more. A server that does not know the condition removes whatever is there.
        """

    def start_upload(self, key: str) -> PendingUpload:
        """Begin a multipart upload; it has no parts yet."""

    def upload_part(self, upload: PendingUpload, number: int, data: Body, crc32: int) -> UploadedPart:
        """Send part `number`, from 1 to `MAX_PARTS`, of at least `MIN_PART` bytes (the last may be smaller) and at most
        `MAX_PART`. The store checks it on arrival, by our CRC-32 or by its MD5.

        :param crc32: the CRC-32 that was computed when the bytes were encoded.
        :raises TransientError: the upload was aborted, or the bytes do not have this CRC-32; write the object again.
        """

    def complete_upload(self, upload: PendingUpload) -> str:
        """Make the object visible, or replace it. Returns its ETag.

        May be repeated after a lost answer: succeeds if the stored object has these bytes.

        :raises TransientError: the upload was aborted; write the object again.
        :raises IntegrityError: the stored object differs from the parts that were sent.
        """

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Remove an upload and its parts; no error if it does not exist."""

    def list_uploads(self, prefix: str) -> Iterator[tuple[str, str, datetime]]:
        """Pending uploads below `prefix`: key, upload id, start time."""

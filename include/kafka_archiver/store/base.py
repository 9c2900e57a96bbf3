"""What the archiver needs of an object store."""

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO, NamedTuple, Protocol

from kafka_archiver.checksum import joined, spelt
from kafka_archiver.errors import TransientError

# S3's rules for the parts of an upload: how small all but the last may be (looked at when the upload is completed), how
# large each, and their numbers.
MIN_PART, MAX_PART = 5 << 20, 5 << 30
MAX_PARTS = 10_000


# What a part is sent from: bytes, or a file from its beginning.
Body = bytes | BinaryIO
_PIECE = 1 << 20
MD5 = re.compile(r"[0-9a-f]{32}")


def pieces(data: Body) -> Iterator[bytes]:
    """The bytes from the first to the last; of a file only a piece is in memory."""
    if isinstance(data, bytes):
        yield data
    else:
        data.seek(0)
        yield from iter(lambda: data.read(_PIECE), b"")


class Stat(NamedTuple):
    """What the store says of an object. `etag` is without quotes; `modified` in UTC by the store's clock.

    `checksum`: the CRC-32 of its bytes, as documents have it; None where the store has none, and in listings.
    """

    key: str
    size: int
    etag: str
    modified: datetime
    checksum: str | None = None


class Version(NamedTuple):
    """An object's bytes, and the ETag that stands for them in `Store.replace`."""

    data: bytes
    etag: str


class Part(NamedTuple):
    """One uploaded part: the store's ETag of it, and the CRC-32 and size computed before it was sent."""

    etag: str
    crc32: int
    size: int


class PendingUpload(NamedTuple):
    """A multipart upload, invisible until somebody completes it with its parts. Picklable.

    `checked`: the store compares each part, and the whole, with our CRC-32 of it.
    """

    key: str
    upload_id: str
    parts: tuple[Part, ...] = ()
    checked: bool = False

    @property
    def size(self) -> int:
        """Bytes in all parts."""
        return sum(p.size for p in self.parts)

    @property
    def crc32(self) -> int:
        """Of all parts together."""
        return joined((p.crc32, p.size) for p in self.parts)

    @property
    def checksum(self) -> str:
        """The same, as documents have it."""
        return spelt(self.crc32)

    @property
    def md5_etag(self) -> str:
        """The object's ETag where ETags are MD5s: that of the parts' MD5s, a dash and their number; else empty."""
        if not all(MD5.fullmatch(p.etag) for p in self.parts):
            return ""
        digest = hashlib.md5(b"".join(bytes.fromhex(p.etag) for p in self.parts), usedforsecurity=False)
        return f"{digest.hexdigest()}-{len(self.parts)}"


def upload_gone(url: str, key: str) -> TransientError:
    """The error for an upload that somebody has ended. Asking again is useless, writing the object again is not."""
    return TransientError(
        f"{url}: the upload of {key} is gone, and no object with its parts is there: another attempt or a lifecycle "
        "rule aborted it. The next attempt of the task writes it again"
    )


class Store(Protocol):
    """Objects below one URL; keys are relative to it. Safe to use from several threads.

    Every method retries what is transient (exponential backoff with full jitter) and raises
    :class:`~kafka_archiver.errors.TransientError` when that did not help,
    :class:`~kafka_archiver.errors.PermanentError` (missing bucket, access denied, …) at once.
    """

    url: str

    def get(self, key: str) -> bytes | None:
        """The object's bytes; None when there is no such object."""

    def read(self, key: str, start: int, length: int) -> bytes | None:
        """Some of the object's bytes, from `start`; fewer where it ends; None when there is no such object."""

    def head(self, key: str) -> Stat | None:
        """What the store says of the object; None when there is no such object."""

    def put(self, key: str, data: bytes) -> str:
        """Write an object, replacing what was there. Returns its ETag."""

    def create(self, key: str, data: bytes) -> bool:
        """Write an object only where there is none. False, and nothing written, when there is one already.

        A retried request that the store had already carried out still answers True: when the store says
        "exists" after an attempt whose answer was lost, the stored bytes decide.
        """

    def version(self, key: str) -> Version | None:
        """The object's bytes with their ETag; None when there is no such object."""

    def replace(self, key: str, data: bytes, etag: str) -> bool:
        """Write an object only while it is the version of this ETag. False, and nothing written, when it is not.

        Answers a retried request as `create` does.
        """

    def now(self) -> datetime:
        """What time it is by the store's clock, UTC, to the second."""

    def list(self, prefix: str) -> Iterator[Stat]:
        """All objects whose key starts with `prefix`, each once, in the server's order.

        S3 lists by key. Other servers list as a file system would (`a/x` before `a-b`): sort where order matters.
        """

    def delete(self, key: str) -> None:
        """Remove an object; no error when there is none."""

    def start_upload(self, key: str) -> PendingUpload:
        """Begin a multipart upload; it has no parts yet."""

    def upload_part(self, upload: PendingUpload, number: int, data: Body, crc32: int) -> Part:
        """Send part `number`, from 1 to `MAX_PARTS`, of at least `MIN_PART` bytes (the last may be smaller) and at most
        `MAX_PART`. The store checks it on arrival, by our CRC-32 or by its MD5.

        :param crc32: of the bytes as they should be.
        :raises TransientError: somebody aborted the upload, or the bytes are not what they should be; the object has
            to be written again.
        """

    def complete_upload(self, upload: PendingUpload) -> str:
        """Make the object visible, replacing what was there. Returns its ETag.

        Completing an upload again whose answer was lost succeeds when the object there has these bytes.

        :raises TransientError: somebody aborted the upload; the object has to be written again.
        :raises IntegrityError: the store made something else of the parts than what was sent.
        """

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Throw an upload's parts away; no error when there is no such upload."""

    def list_uploads(self, prefix: str) -> Iterator[tuple[str, str, datetime]]:
        """Uploads neither completed nor aborted below `prefix`: key, upload id, when it began."""

"""What the archiver needs of an object store."""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from kafka_archiver.errors import TransientError

# The smallest part of a multipart upload, except the last: S3's rule, enforced when the upload is completed.
MIN_PART = 5 << 20


class Stat(NamedTuple):
    """What the store says of an object. `etag` is without quotes; `modified` in UTC by the store's clock."""

    key: str
    size: int
    etag: str
    modified: datetime


class Version(NamedTuple):
    """An object's bytes, and the ETag that stands for them in `Store.replace`."""

    data: bytes
    etag: str


class Part(NamedTuple):
    """One uploaded part: the store's ETag of it, and the MD5 (hex) and size computed before it was sent."""

    etag: str
    md5: str
    size: int


class PendingUpload(NamedTuple):
    """A multipart upload with all its parts sent, invisible until somebody completes it. Picklable."""

    key: str
    upload_id: str
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Bytes in all parts."""
        return sum(p.size for p in self.parts)

    @property
    def checksum(self) -> str:
        """The MD5 of the parts' MD5s, a dash and their number: S3's own ETag of an unencrypted multipart upload."""
        digest = hashlib.md5(b"".join(bytes.fromhex(p.md5) for p in self.parts), usedforsecurity=False)
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

    def start_upload(self, key: str) -> str:
        """Begin a multipart upload. Returns its upload id."""

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes | memoryview) -> Part:
        """Send part `number` (from 1; all but the last at least `MIN_PART`). The store checks its MD5 on arrival.

        :raises TransientError: somebody aborted the upload; the object has to be written again.
        """

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> str:
        """Make the object visible, replacing what was there. Returns its ETag.

        Completing an upload again whose answer was lost succeeds when the object is there with these parts.

        :raises TransientError: somebody aborted the upload; the object has to be written again.
        """

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Throw an upload's parts away; no error when there is no such upload."""

    def list_uploads(self, prefix: str) -> Iterator[tuple[str, str, datetime]]:
        """Uploads neither completed nor aborted below `prefix`: key, upload id, when it began."""

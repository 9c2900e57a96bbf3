"""An in-memory twin of the S3 store for tests: the same results and errors, without a server."""

import hashlib
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.store.base import (
    MAX_PARTS,
    MIN_PART,
    Body,
    PendingUpload,
    Stat,
    StoredObject,
    UploadedPart,
    pieces,
    upload_gone,
)
from kafka_archiver.store.object_check import compare
from kafka_archiver.store.options import S3Options
from kafka_archiver.store.retry import Backoff
from kafka_archiver.values.checksum import spelt


@dataclass(slots=True)
class _Upload:
    key: str
    began: datetime
    parts: dict[int, tuple[str, bytes]] = field(default_factory=dict)


@dataclass(slots=True)
class _Bucket:
    """The content that all stores of one name share. Keys include the stores' prefixes."""

    objects: dict[str, tuple[bytes, Stat]] = field(default_factory=dict)
    uploads: dict[str, _Upload] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    foreign_etags: bool = False
    checksums: bool = True

    def write(self, key: str, data: bytes, etag: str) -> str:
        checksum = spelt(zlib.crc32(data)) if self.checksums else None
        self.objects[key] = (data, Stat(key, len(data), etag, self.clock(), checksum))
        return etag

    def etag(self, data: bytes) -> str:
        return uuid.uuid4().hex if self.foreign_etags else hashlib.md5(data, usedforsecurity=False).hexdigest()


_buckets: dict[str, _Bucket] = {}
_buckets_lock = threading.Lock()


def open_memory(name: str, prefix: str, options: Mapping[str, str], _: Backoff) -> "MemoryStore":
    """Open the store of `memory://name/prefix`, which this process shares. It ignores the options of S3."""
    S3Options.parse(options)
    return MemoryStore(name, prefix)


class MemoryStore:
    """Objects in this process. All stores of one `name` share objects and settings.

    :param foreign_etags: each write gets a random ETag, as under SSE-KMS. Else ETags are MD5s.
    :param checksums: the store checks and keeps CRC-32s.
    """

    def __init__(
        self,
        name: str,
        prefix: str = "",
        clock: Callable[[], datetime] | None = None,
        foreign_etags: bool | None = None,
        checksums: bool | None = None,
    ) -> None:
        self.url = f"memory://{name}/{prefix}".rstrip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        with _buckets_lock:
            self._bucket = _buckets.setdefault(name, _Bucket())
        if clock is not None:
            self._bucket.clock = clock
        if foreign_etags is not None:
            self._bucket.foreign_etags = foreign_etags
        if checksums is not None:
            self._bucket.checksums = checksums

    def __repr__(self) -> str:
        return f"MemoryStore({self.url!r})"

    def get(self, key: str) -> bytes | None:
        with self._bucket.lock:
            stored = self._bucket.objects.get(self._prefix + key)
        return stored[0] if stored else None

    def read(self, key: str, start: int, length: int) -> bytes | None:
        data = self.get(key)
        return None if data is None else data[start : start + length]

    def head(self, key: str) -> Stat | None:
        with self._bucket.lock:
            stored = self._bucket.objects.get(self._prefix + key)
        return stored[1]._replace(key=key) if stored else None

    def put(self, key: str, data: bytes) -> str:
        with self._bucket.lock:
            return self._bucket.write(self._prefix + key, bytes(data), self._bucket.etag(data))

    def create(self, key: str, data: bytes) -> bool:
        with self._bucket.lock:
            if self._prefix + key in self._bucket.objects:
                return False
            self.put(key, data)
            return True

    def version(self, key: str) -> StoredObject | None:
        with self._bucket.lock:
            stored = self._bucket.objects.get(self._prefix + key)
        return StoredObject(stored[0], stored[1].etag) if stored else None

    def replace(self, key: str, data: bytes, etag: str) -> bool:
        with self._bucket.lock:
            stat = self.head(key)
            if stat is None or stat.etag != etag:
                return False
            self.put(key, data)
            return True

    def now(self) -> datetime:
        return self._bucket.clock().replace(microsecond=0)

    def list(self, prefix: str) -> Iterator[Stat]:
        with self._bucket.lock:
            infos = [
                stat._replace(key=key.removeprefix(self._prefix), checksum=None)
                for key, (_, stat) in self._bucket.objects.items()
                if key.startswith(self._prefix + prefix)
            ]
        # S3 orders by UTF-8 bytes.
        yield from sorted(infos, key=lambda stat: stat.key.encode())

    def delete(self, key: str) -> None:
        with self._bucket.lock:
            self._bucket.objects.pop(self._prefix + key, None)

    def delete_version(self, key: str, etag: str) -> bool:
        with self._bucket.lock:
            stat = self.head(key)
            if stat and stat.etag == etag:
                self.delete(key)
            return stat is None or stat.etag == etag

    def start_upload(self, key: str) -> PendingUpload:
        upload_id = uuid.uuid4().hex
        with self._bucket.lock:
            self._bucket.uploads[upload_id] = _Upload(self._prefix + key, self._bucket.clock())
        return PendingUpload(key, upload_id, checked=self._bucket.checksums)

    def upload_part(self, upload: PendingUpload, number: int, data: Body, crc32: int) -> UploadedPart:
        content = b"".join(pieces(data))
        if zlib.crc32(content) != crc32:
            raise TransientError(f"{self.url}: part {number} of {upload.key} does not have its CRC-32")
        with self._bucket.lock:
            begun = self._upload(upload.key, upload.upload_id)
            if begun is None:
                raise upload_gone(self.url, upload.key)
            if not 1 <= number <= MAX_PARTS:
                raise PermanentError(f"{self.url}: {upload.key} has no part {number}: S3 takes 1 to {MAX_PARTS:,}")
            begun.parts[number] = (self._bucket.etag(content), content)
            return UploadedPart(begun.parts[number][0], crc32, len(content))

    def complete_upload(self, upload: PendingUpload) -> str:
        key, parts = upload.key, upload.parts
        with self._bucket.lock:
            begun = self._upload(key, upload.upload_id)
            if begun is None:
                difference = compare(self, key, upload.size, upload.checksum, upload.md5_etag)
                if not difference.same or difference.stat is None:
                    raise upload_gone(self.url, key)
                return difference.stat.etag
            sent = [begun.parts[number] for number in range(1, len(parts) + 1) if number in begun.parts]
            if not parts or [etag for etag, _ in sent] != [part.etag for part in parts]:
                raise PermanentError(f"{self.url}: {key} cannot be completed: its upload does not have these parts")
            if any(len(data) < MIN_PART for _, data in sent[:-1]):
                raise PermanentError(
                    f"{self.url}: {key} cannot be completed: a part other than the last is smaller than 5 MiB"
                )
            whole = b"".join(data for _, data in sent)
            if upload.checked and zlib.crc32(whole) != upload.crc32:
                raise TransientError(f"{self.url}: {key} cannot be completed: its parts do not have its CRC-32")
            del self._bucket.uploads[upload.upload_id]
            etag = f"{self._bucket.etag(whole)}-{len(parts)}" if self._bucket.foreign_etags else upload.md5_etag
            return self._bucket.write(self._prefix + key, whole, etag)

    def abort_upload(self, key: str, upload_id: str) -> None:
        with self._bucket.lock:
            if self._upload(key, upload_id):
                del self._bucket.uploads[upload_id]

    def list_uploads(self, prefix: str) -> Iterator[tuple[str, str, datetime]]:
        with self._bucket.lock:
            uploads = [
                (upload.key.removeprefix(self._prefix), upload_id, upload.began)
                for upload_id, upload in self._bucket.uploads.items()
                if upload.key.startswith(self._prefix + prefix)
            ]
        yield from sorted(uploads)

    def _upload(self, key: str, upload_id: str) -> _Upload | None:
        upload = self._bucket.uploads.get(upload_id)
        return upload if upload and upload.key == self._prefix + key else None

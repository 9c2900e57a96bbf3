"""The twin of the S3 store for tests: the same answers, errors included, without a server."""

import hashlib
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kafka_archiver.errors import PermanentError
from kafka_archiver.store.base import MIN_PART, Part, PendingUpload, Stat, Version, upload_gone


@dataclass(slots=True)
class _Upload:
    key: str
    began: datetime
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class _Bucket:
    """What all stores of one name share. Keys are whole, the stores' prefixes included."""

    objects: dict[str, tuple[bytes, Stat]] = field(default_factory=dict)
    uploads: dict[str, _Upload] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def write(self, key: str, data: bytes, etag: str) -> str:
        self.objects[key] = (data, Stat(key, len(data), etag, self.clock()))
        return etag


_buckets: dict[str, _Bucket] = {}
_buckets_lock = threading.Lock()


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


class MemoryStore:
    """Objects in this process. All stores of one `name` see the same ones, and have the same clock."""

    def __init__(self, name: str, prefix: str = "", clock: Callable[[], datetime] | None = None) -> None:
        self.url = f"memory://{name}/{prefix}".rstrip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        with _buckets_lock:
            self._bucket = _buckets.setdefault(name, _Bucket())
        if clock is not None:
            self._bucket.clock = clock

    def __repr__(self) -> str:
        return f"MemoryStore({self.url!r})"

    def get(self, key: str) -> bytes | None:
        with self._bucket.lock:
            found = self._bucket.objects.get(self._prefix + key)
        return found[0] if found else None

    def read(self, key: str, start: int, length: int) -> bytes | None:
        data = self.get(key)
        return None if data is None else data[start : start + length]

    def head(self, key: str) -> Stat | None:
        with self._bucket.lock:
            found = self._bucket.objects.get(self._prefix + key)
        return found[1]._replace(key=key) if found else None

    def put(self, key: str, data: bytes) -> str:
        with self._bucket.lock:
            return self._bucket.write(self._prefix + key, bytes(data), _md5(data))

    def create(self, key: str, data: bytes) -> bool:
        with self._bucket.lock:
            if self._prefix + key in self._bucket.objects:
                return False
            self.put(key, data)
            return True

    def version(self, key: str) -> Version | None:
        with self._bucket.lock:
            found = self._bucket.objects.get(self._prefix + key)
        return Version(found[0], found[1].etag) if found else None

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
            found = [
                stat._replace(key=key.removeprefix(self._prefix))
                for key, (_, stat) in self._bucket.objects.items()
                if key.startswith(self._prefix + prefix)
            ]
        # S3 orders by UTF-8 bytes.
        yield from sorted(found, key=lambda stat: stat.key.encode())

    def delete(self, key: str) -> None:
        with self._bucket.lock:
            self._bucket.objects.pop(self._prefix + key, None)

    def start_upload(self, key: str) -> str:
        upload_id = uuid.uuid4().hex
        with self._bucket.lock:
            self._bucket.uploads[upload_id] = _Upload(self._prefix + key, self._bucket.clock())
        return upload_id

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes | memoryview) -> Part:
        content = bytes(data)
        md5 = _md5(content)
        with self._bucket.lock:
            upload = self._upload(key, upload_id)
            if upload is None:
                raise upload_gone(self.url, key)
            upload.parts[number] = content
        return Part(etag=md5, md5=md5, size=len(content))

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> str:
        checksum = PendingUpload(key, upload_id, tuple(parts)).checksum
        with self._bucket.lock:
            upload = self._upload(key, upload_id)
            if upload is None:
                stat = self.head(key)
                if stat is None or stat.etag != checksum:
                    raise upload_gone(self.url, key)
                return stat.etag
            sent = [upload.parts.get(number) for number in range(1, len(parts) + 1)]
            content = [data for data in sent if data is not None]
            if not parts or [_md5(data) for data in content] != [part.etag for part in parts]:
                raise PermanentError(f"{self.url}: {key} cannot be completed: its upload does not have these parts")
            if any(len(data) < MIN_PART for data in content[:-1]):
                raise PermanentError(
                    f"{self.url}: {key} cannot be completed: a part other than the last is smaller than 5 MiB"
                )
            del self._bucket.uploads[upload_id]
            return self._bucket.write(self._prefix + key, b"".join(content), checksum)

    def abort_upload(self, key: str, upload_id: str) -> None:
        with self._bucket.lock:
            if self._upload(key, upload_id):
                del self._bucket.uploads[upload_id]

    def list_uploads(self, prefix: str) -> Iterator[tuple[str, str, datetime]]:
        with self._bucket.lock:
            found = [
                (upload.key.removeprefix(self._prefix), upload_id, upload.began)
                for upload_id, upload in self._bucket.uploads.items()
                if upload.key.startswith(self._prefix + prefix)
            ]
        yield from sorted(found)

    def _upload(self, key: str, upload_id: str) -> _Upload | None:
        upload = self._bucket.uploads.get(upload_id)
        return upload if upload and upload.key == self._prefix + key else None

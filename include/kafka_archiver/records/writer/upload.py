"""Cuts an object into parts and sends them, in background threads while the task encodes further records.

See `records/writer/result.Limits`. Uploads stay invisible until `complete`, which runs after all chunks are written.
"""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from threading import BoundedSemaphore, Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import Buffer
from kafka_archiver.records.writer.disk import LateDirectory
from kafka_archiver.records.writer.finish_uploads import abort_upload
from kafka_archiver.records.writer.part import PartBuffer, part_size
from kafka_archiver.store.base import PendingUpload, Store, UploadedPart
from kafka_archiver.values.threads import each

if TYPE_CHECKING:
    from kafka_archiver.encryption.sealed import Sealer

log = logging.getLogger(__name__)


class Sender:
    """Sends the parts of all uploads of one chunk. An exception in the `with` block aborts all uploads."""

    def __init__(self, store: Store, threads: int) -> None:
        self._store = store
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="upload")
        # One slot per thread, so that no part waits in memory for a thread.
        self._slots = BoundedSemaphore(threads)
        self._all: list[Upload] = []
        self._failure: BaseException | None = None

    def new(self, key: str) -> "Upload":
        """A new upload. It sends nothing yet."""
        upload = Upload(self._store, key, self._submit)
        self._all.append(upload)
        return upload

    def check(self) -> None:
        """Raise the first error of a part, so that the task does not encode further records in vain."""
        if self._failure is not None:
            raise self._failure

    def _submit(self, send: Callable[[], UploadedPart], last: bool) -> Future[UploadedPart]:
        def work() -> UploadedPart:
            try:
                return send()
            except BaseException as error:
                self._failure = self._failure or error
                raise
            finally:
                self._slots.release()

        self._slots.acquire()
        self.check()
        if last and len(self._all) == 1:
            # Nothing is left to do meanwhile, and starting a thread would cost as much as a request.
            sent = Future[UploadedPart]()
            sent.set_result(work())
            return sent
        return self._pool.submit(work)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Wait for running requests: a part that arrives after the abort would stay in the store for ever.
        self._pool.shutdown(cancel_futures=True)
        if error is not None:
            each(Upload.abort, self._all, self._threads)


class Upload:
    """One object's multipart upload. The first part starts it in the store."""

    __slots__ = ("_beginning", "_begun", "_key", "_parts", "_store", "_submit")

    def __init__(
        self, store: Store, key: str, submit: Callable[[Callable[[], UploadedPart], bool], Future[UploadedPart]]
    ) -> None:
        self._store = store
        self._key = key
        self._submit = submit
        self._begun: PendingUpload | None = None
        self._beginning = Lock()
        self._parts: list[Future[UploadedPart]] = []

    def send(self, part: PartBuffer, last: bool = False) -> None:
        """Send the next part in the background; wait while all threads are busy.

        :param last: no part follows. That of the only upload is sent at once.
        :raises BaseException: the error of an earlier part of any upload.
        """
        number = len(self._parts) + 1
        self._parts.append(self._submit(lambda: self._transfer(number, part), last))

    def _transfer(self, number: int, part: PartBuffer) -> UploadedPart:
        with self._beginning:
            if self._begun is None:
                self._begun = self._store.start_upload(self._key)
        with closing(part):
            return self._store.upload_part(self._begun, number, part.take(), part.crc32)

    def pending(self) -> PendingUpload:
        """The upload. Waits until all its parts are stored."""
        parts = tuple(part.result() for part in self._parts)
        # A future takes a kilobyte, and a chunk may have ten thousand objects.
        self._parts.clear()
        assert self._begun is not None, "an upload without a part"
        return self._begun._replace(parts=parts)

    def abort(self) -> None:
        """Abort the upload if it was started."""
        if self._begun is not None:
            abort_upload(self._store, self._key, self._begun.upload_id)


class PartStream:
    """Takes the bytes of an object in order, and sends every part as soon as it is full.

    :param sealer: encrypts the bytes first.
    """

    def __init__(
        self, upload: Upload, part_bytes: int, directory: LateDirectory, sealer: "Sealer | None" = None
    ) -> None:
        self._sealer = sealer
        self.buffer = PartBuffer(directory, part_bytes)
        self._number = 1
        self._upload = upload
        self._part_bytes = part_bytes
        self._directory = directory
        self._bytes = 0

    def put(self, buffers: Iterable[Buffer]) -> None:
        self._add(self._sealer.update(buffers) if self._sealer else buffers)

    def _add(self, buffers: Iterable[Buffer]) -> None:
        for buffer in buffers:
            data = memoryview(buffer).cast("B")
            whole = len(data)
            self._bytes += whole
            # Cut at fixed positions, so that every attempt sends the same parts and gets the same ETag.
            while len(data) >= (room := part_size(self._number, self._part_bytes) - self.buffer.size):
                self.buffer.add(data[:room])
                data = data[room:]
                self._send()
            # Copy the remainder: a slice would keep the bytes that were sent in memory.
            self.buffer.add(data if len(data) == whole else memoryview(bytes(data)))

    def finish(self) -> None:
        if self._sealer:
            self._add(self._sealer.finish())
            self._sealer = None
        if self.buffer.size or not self._bytes:
            self._send(last=True)

    def uploaded(self) -> PendingUpload:
        """The upload. Waits until all its parts are stored."""
        upload = self._upload.pending()
        if upload.size != self._bytes:
            raise IntegrityError(f"{upload.key}: {self._bytes} bytes were encoded, but {upload.size} bytes were sent")
        return upload

    def _send(self, last: bool = False) -> None:
        self._upload.send(self.buffer, last)
        self.buffer = PartBuffer(self._directory, self._part_bytes)
        self._number += 1

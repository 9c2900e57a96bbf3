"""The bytes of one object, cut into parts and sent."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import Buffer
from kafka_archiver.records.writer.disk import LateDirectory
from kafka_archiver.records.writer.part import PartBuffer, part_size
from kafka_archiver.records.writer.upload import Upload
from kafka_archiver.store.base import PendingUpload

if TYPE_CHECKING:
    from kafka_archiver.encryption.sealed import Sealer


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
        """Take bytes."""
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
        """Send the last part."""
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

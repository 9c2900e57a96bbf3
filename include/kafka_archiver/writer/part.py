"""The part of an object that is being filled: in memory, or its first bytes in a temporary file."""

import tempfile
from io import BufferedRandom
from pathlib import Path

from kafka_archiver.writer.disk import disk


class PartBuffer:
    """Bytes on their way to one part."""

    def __init__(self, directory: Path) -> None:
        self.size = 0
        self._directory = directory
        self._memory = bytearray()
        self._file: BufferedRandom | None = None

    @property
    def held(self) -> int:
        """The bytes of it that are in memory."""
        return len(self._memory)

    def add(self, data: memoryview) -> None:
        """Append bytes."""
        self._memory += data
        self.size += len(data)

    def spill(self) -> None:
        """Move what is in memory to the end of a temporary file."""
        with disk(self._directory):
            if self._file is None:
                # Without a name from the first moment on, so that not even a killed process leaves it behind.
                self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115
            self._file.write(self._memory)
        self._memory = bytearray()

    def take(self) -> memoryview:
        """All its bytes. It is of no use afterwards."""
        if self._file is None:
            return memoryview(self._memory)
        whole = memoryview(bytearray(self.size))
        with disk(self._directory), self._file as file:
            file.seek(0)
            count = file.readinto(whole[: self.size - len(self._memory)])
        # Refuses to be of another length, should the file have been read short.
        whole[count:] = self._memory
        self._memory = bytearray()
        return whole

    def close(self) -> None:
        """Remove its file, if it has one."""
        if self._file is not None:
            self._file.close()

"""The part of an object that is being filled: in memory, or its first bytes in a temporary file."""

import tempfile
from io import BufferedRandom
from pathlib import Path

from kafka_archiver.errors import IntegrityError
from kafka_archiver.writer.disk import disk


class PartBuffer:
    """Bytes on their way to one part."""

    def __init__(self, directory: Path) -> None:
        self.size = 0
        self.held = 0
        """The bytes of it that are in memory."""
        self._directory = directory
        # Joined once, at the end: to let one buffer grow costs more than all that is done with it.
        self._memory: list[memoryview] = []
        self._file: BufferedRandom | None = None

    def add(self, data: memoryview) -> None:
        """Append bytes, which nobody may change later."""
        self._memory.append(data)
        self.held += len(data)
        self.size += len(data)

    def spill(self) -> None:
        """Move what is in memory to the end of a temporary file."""
        with disk(self._directory):
            if self._file is None:
                # Without a name from the first moment on, so that not even a killed process leaves it behind.
                self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115
            self._file.writelines(self._memory)
        self._memory, self.held = [], 0

    def take(self) -> bytes:
        """All its bytes. It is of no use afterwards."""
        memory, self._memory, self.held = self._memory, [], 0
        if self._file is None:
            return b"".join(memory)
        with disk(self._directory), self._file as file:
            file.seek(0)
            whole = b"".join([file.read(), *memory])
        if len(whole) != self.size:
            raise IntegrityError(f"{self.size} bytes of a part were put on local disk, {len(whole)} came back")
        return whole

    def close(self) -> None:
        """Remove its file, if it has one."""
        if self._file is not None:
            self._file.close()

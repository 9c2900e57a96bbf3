"""Reads encrypted objects, by docs/FORMAT.md: header, then segments that are encrypted one by one."""

import hashlib
import hmac
import io
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

from kafka_archiver.audit.readers.base import Fetch

_HEADER, _TAG = 56, 16


class Unsealed(io.RawIOBase):
    """The content of an encrypted object as a file; one segment is in memory.

    :param fetch: reads bytes of the encrypted object.
    :param size: of the encrypted object.
    :param key: the object's key in the store.
    :param secret: the plan's data key.
    :raises ValueError: also when reading: the object is damaged, truncated, or not the one of this key.
    """

    def __init__(self, fetch: Fetch, size: int, key: str, secret: bytes) -> None:
        self._fetch = fetch
        self._head = fetch(0, _HEADER)
        if self._head[:4] != b"KAE1" or len(self._head) != _HEADER:
            raise ValueError("it is not an encrypted object: it has no header")
        salt = self._head[24:]
        if salt != hashlib.sha256(key.encode()).digest():
            raise ValueError("it was encrypted as an object of another key, and put here")
        self._length = int.from_bytes(self._head[4:8]) + _TAG
        self._count, rest = divmod(size - _HEADER, self._length)
        self._count += rest > 0
        if not self._count or 0 < rest < _TAG:
            raise ValueError("it is truncated")
        self.size = size - _HEADER - self._count * _TAG
        # HKDF with SHA-256, of one block.
        extracted = hmac.digest(salt, secret, "sha256")
        self._cipher = AESGCMSIV(hmac.digest(extracted, b"kafka-archiver/object\x01", "sha256"))
        self._at, self._held = 0, (-1, b"")
        self._checked: set[int] = set()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self.size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        number, skipped = divmod(self._at, self._length - _TAG)
        if self._at >= self.size:
            return 0
        if self._held[0] != number:
            self._held = (number, self._segment(number))
        piece = self._held[1][skipped : skipped + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def fetch(self, start: int, length: int) -> bytes:
        """Bytes of the content."""
        self.seek(start)
        found = b""
        while len(found) < length and (piece := self.read(length - len(found))):
            found += piece
        return found

    def read_to_end(self) -> None:
        """Check the segments that a reader has skipped."""
        for number in range(self._count):
            if number not in self._checked:
                self._segment(number)

    def _segment(self, number: int) -> bytes:
        data = self._fetch(_HEADER + number * self._length, self._length)
        nonce = number.to_bytes(8) + int(number == self._count - 1).to_bytes(4)
        try:
            found = self._cipher.decrypt(nonce, data, self._head)
        except InvalidTag:
            raise ValueError(f"segment {number + 1} of {self._count} is not what was encrypted with this key") from None
        self._checked.add(number)
        return found

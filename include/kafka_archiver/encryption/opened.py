"""Reads sealed objects, in order or at any place."""

import io
from collections.abc import Callable
from typing import Any

from cryptography.exceptions import InvalidTag

from kafka_archiver.data_keys import DataKey
from kafka_archiver.encryption.sealed import HEADER, NONCE, TAG, Header, cipher, salt_of
from kafka_archiver.errors import IntegrityError

# Reads bytes of an object: (start, length).
Fetch = Callable[[int, int], bytes]
# The data key of an id.
FindKey = Callable[[str], DataKey]


class Opened(io.RawIOBase):
    """The content of a sealed object, as a file. One segment is in memory, besides what `fetch` holds.

    :param size: the sealed object's.
    :param key: the object's key in the store; None: its name is not known any more, and is not compared.
    :raises IntegrityError: also when reading: the object is damaged, truncated, or another object.
    """

    def __init__(self, fetch: Fetch, size: int, find_key: FindKey, name: str, key: str | None = None) -> None:
        self._fetch, self._sealed_size, self._name = fetch, size, name
        self._head = fetch(0, HEADER.size)
        header = Header.parse(self._head, name)
        if key is not None and header.salt != salt_of(key):
            raise IntegrityError(
                f"{name} is another object, which somebody has put there: its header is not of this key"
            )
        self._length = header.segment
        whole = size - HEADER.size
        self._count = -(-whole // (self._length + TAG))
        self.size = whole - self._count * TAG
        if self._count < 1 or self.size < 0:
            raise IntegrityError(f"{name} is truncated: it has {size} bytes")
        self._cipher = cipher(find_key(header.key_id), header.salt)
        self._number, self._segment, self._at = -1, b"", 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        number, start = divmod(self._at, self._length)
        if number >= self._count:
            return 0
        if number != self._number:
            self._segment, self._number = self._open(number), number
        piece = self._segment[start : start + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def check(self) -> None:
        """Read all of it."""
        for number in range(self._count):
            self._open(number)

    def _open(self, number: int) -> bytes:
        sealed = self._length + TAG
        data = self._fetch(HEADER.size + number * sealed, sealed)
        try:
            return self._cipher.decrypt(NONCE.pack(number, number + 1 == self._count), data, self._head)
        except InvalidTag:
            raise IntegrityError(
                f"{self._name} is damaged: segment {number + 1} of {self._count} is not what was encrypted"
            ) from None

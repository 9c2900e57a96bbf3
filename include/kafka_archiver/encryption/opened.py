"""Reads sealed objects, in order or at any place."""

from collections.abc import Callable

from cryptography.exceptions import InvalidTag

from kafka_archiver.encryption.sealed import HEADER, NONCE, TAG, SealedHeader, cipher, salt_of
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.data_keys import DataKey
from kafka_archiver.values.segmented import Segmented

# Reads bytes of an object: (start, length).
Fetch = Callable[[int, int], bytes]
# The data key of an id.
FindKey = Callable[[str], DataKey]


class OpenedObject(Segmented):
    """The content of a sealed object, as a file. One segment is in memory, besides what `fetch` holds.

    :param size: the sealed object's.
    :param key: the object's key in the store; None: its name is not known any more, and is not compared.
    :raises IntegrityError: also when reading: the object is damaged, truncated, or another object.
    """

    def __init__(self, fetch: Fetch, size: int, find_key: FindKey, name: str, key: str | None = None) -> None:
        self._fetch, self._name = fetch, name
        self._head = fetch(0, HEADER.size)
        header = SealedHeader.parse(self._head, name)
        if key is not None and header.salt != salt_of(key):
            raise IntegrityError(
                f"{name} is another object, which somebody has put there: its header is not of this key"
            )
        whole = size - HEADER.size
        count = -(-whole // (header.segment + TAG))
        super().__init__(whole - count * TAG, header.segment, count)
        if count < 1 or self.size < 0:
            raise IntegrityError(f"{name} is truncated: it has {size} bytes")
        self._cipher = cipher(find_key(header.key_id), header.salt)

    def range(self, start: int, length: int) -> bytes:
        """Return bytes of the content, fewer at its end, with one fetch of all their segments."""
        end = min(start + length, self.size)
        if start >= end:
            return b""
        first, last = start // self._length, (end - 1) // self._length
        sealed = self._length + TAG
        data = self._fetch(HEADER.size + first * sealed, (last + 1 - first) * sealed)
        numbers = range(first, last + 1)
        plain = b"".join(self._decrypted(n, data[(n - first) * sealed : (n + 1 - first) * sealed]) for n in numbers)
        return plain[start - first * self._length : end - first * self._length]

    def check(self) -> None:
        for number in range(self._count):
            self._fetched(number)

    def _fetched(self, number: int) -> bytes:
        sealed = self._length + TAG
        return self._decrypted(number, self._fetch(HEADER.size + number * sealed, sealed))

    def _decrypted(self, number: int, data: bytes) -> bytes:
        try:
            return self._cipher.decrypt(NONCE.pack(number, number + 1 == self._count), data, self._head)
        except InvalidTag:
            raise IntegrityError(
                f"{self._name} is damaged: segment {number + 1} of {self._count} is not what was encrypted"
            ) from None

"""Reads encrypted objects, by docs/FORMAT.md: header, then segments that are encrypted one by one."""

import hashlib
import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

from kafka_archiver.audit.readers.base import Fetch
from kafka_archiver.values.segmented import Segmented

_HEADER, _TAG = 56, 16


class Unsealed(Segmented):
    """The content of an encrypted object as a file.

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
        self._sealed = int.from_bytes(self._head[4:8]) + _TAG
        count, remainder = divmod(size - _HEADER, self._sealed)
        count += remainder > 0
        if not count or 0 < remainder < _TAG:
            raise ValueError("it is truncated")
        super().__init__(size - _HEADER - count * _TAG, self._sealed - _TAG, count)
        # HKDF with SHA-256, of one block.
        extracted = hmac.digest(salt, secret, "sha256")
        self._cipher = AESGCMSIV(hmac.digest(extracted, b"kafka-archiver/object\x01", "sha256"))
        self._checked: set[int] = set()

    def read_to_end(self) -> None:
        """Check the segments that a reader has skipped."""
        for number in range(self._count):
            if number not in self._checked:
                self._fetched(number)

    def _fetched(self, number: int) -> bytes:
        data = self._fetch(_HEADER + number * self._sealed, self._sealed)
        nonce = number.to_bytes(8) + int(number == self._count - 1).to_bytes(4)
        try:
            plain = self._cipher.decrypt(nonce, data, self._head)
        except InvalidTag:
            raise ValueError(f"segment {number + 1} of {self._count} is not what was encrypted with this key") from None
        self._checked.add(number)
        return plain

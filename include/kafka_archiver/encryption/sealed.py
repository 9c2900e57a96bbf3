"""Sealed objects: the container, and what writes it. docs/FORMAT.md has its table of bytes.

An object is a header and segments of 64 KiB, each encrypted by AES-256-GCM-SIV (RFC 8452) with the object's own key.
The nonce is the segment's number and whether it is the last, so no segment can be removed, added, or put elsewhere.

The same plan gives the same bytes: nothing is random but the plan's data key. An attempt may find other records at the
same place than the attempt before (retention, another policy). Its segments then have the nonces of the other ones, but
other bytes; AES-GCM-SIV is made for this: it shows only whether the segments are equal. (AES-GCM would give away both.)
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.data_keys import LENGTH, DataKey

MAGIC = b"KAE1"
SEGMENT = 64 << 10
TAG = 16
# Magic, size of a segment, id of the data key, salt of the object's key.
HEADER = struct.Struct(">4sI16s32s")
NONCE = struct.Struct(">QI")
_PURPOSE = b"kafka-archiver/object"


class SealedHeader(NamedTuple):
    """The header of a sealed object. `salt`: the SHA-256 of the object's name when it was written."""

    segment: int
    key_id: str
    salt: bytes

    @classmethod
    def parse(cls, data: bytes, name: str) -> "SealedHeader":
        """The inverse of `to_bytes`.

        :param name: the object in messages.
        :raises IntegrityError: it is no header.
        """
        if len(data) != HEADER.size or not data.startswith(MAGIC):
            raise IntegrityError(f"{name} is not encrypted by the archiver: expected an object that begins with KAE1")
        _, segment, key_id, salt = HEADER.unpack(data)
        if not 0 < segment <= 1 << 30:
            raise IntegrityError(f"{name} is damaged: its header has segments of {segment} bytes")
        return cls(segment, key_id.hex(), salt)

    def to_bytes(self) -> bytes:
        """Its 56 bytes."""
        return HEADER.pack(MAGIC, self.segment, bytes.fromhex(self.key_id), self.salt)


def salt_of(key: str) -> bytes:
    """The salt of an object's key. :param key: the object's key in the store, without the store's prefix."""
    return hashlib.sha256(key.encode()).digest()


def cipher(data_key: DataKey, salt: bytes) -> AESGCMSIV:
    """The cipher of one object."""
    return AESGCMSIV(HKDF(SHA256(), LENGTH, salt, _PURPOSE).derive(data_key.secret))


class Sealer:
    """Encrypts the bytes of one object, in order. Holds at most a segment of them."""

    def __init__(self, data_key: DataKey, key: str) -> None:
        self._header = SealedHeader(SEGMENT, data_key.id, salt_of(key)).to_bytes()
        self._cipher = cipher(data_key, salt_of(key))
        self._number = 0
        self._held = bytearray()

    def update(self, buffers: Iterable["bytes | bytearray | memoryview"]) -> Iterator[bytes]:
        """Take bytes. Yields those of the sealed object that are certain."""
        for buffer in buffers:
            data, at = memoryview(buffer).cast("B"), 0
            if self._held:
                at = SEGMENT - len(self._held)
                self._held += data[:at]
            # A full segment waits until a byte follows: until then it may be the last.
            while at < len(data):
                if self._held:
                    yield from self._sealed(self._held, last=False)
                    self._held = bytearray()
                if len(data) - at > SEGMENT:
                    yield from self._sealed(data[at : at + SEGMENT], last=False)
                    at += SEGMENT
                else:
                    self._held += data[at:]
                    at = len(data)

    def finish(self) -> Iterator[bytes]:
        """The rest of the sealed object."""
        yield from self._sealed(self._held, last=True)

    def _sealed(self, data: "bytearray | memoryview", last: bool) -> Iterator[bytes]:
        if not self._number:
            yield self._header
        yield self._cipher.encrypt(NONCE.pack(self._number, last), data, self._header)
        self._number += 1

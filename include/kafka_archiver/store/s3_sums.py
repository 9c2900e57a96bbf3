"""The checksums that are sent to S3 with bytes, and the checksum or ETag in its answers."""

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.store.base import MD5, Body, PendingUpload, pieces
from kafka_archiver.values.checksum import crc32

Answer = Mapping[str, Any]
# Four bytes in base64. A checksum of the parts' checksums does not match: it ends with a dash and their number.
_CRC = re.compile(r"[A-Za-z0-9+/]{6}==")
_MD5_OF_MD5S = re.compile(rf"{MD5.pattern}-[0-9]+")
# Requests the CRC-32 of the whole object: it does not depend on the sizes of the parts.
OF_THE_WHOLE = {"ChecksumAlgorithm": "CRC32", "ChecksumType": "FULL_OBJECT"}
# Requests the checksum in the answer to GET and HEAD.
TELL = {"ChecksumMode": "ENABLED"}
# Marks an answer of a store whose ETags are no MD5s, even if they look like them.
OPAQUE = "OpaqueETag"


class Sums(NamedTuple):
    """The checksums of bytes that are sent or were read. `md5`: None if the CRC-32 is enough."""

    crc32: int
    md5: bytes | None = None

    @classmethod
    def of(cls, data: Body) -> Self:
        """Compute both."""
        md5, crc = hashlib.md5(usedforsecurity=False), 0
        for piece in pieces(data):
            md5.update(piece)
            crc = crc32(piece, crc)
        return cls(crc, md5.digest())

    @property
    def content_md5(self) -> dict[str, str]:
        """The parameter with which any S3 server checks the bytes; empty without an MD5."""
        return {"ContentMD5": base64.b64encode(self.md5).decode()} if self.md5 else {}

    @property
    def checksum(self) -> dict[str, str]:
        """The parameter with which a server with additional checksums checks the bytes."""
        return encoded(self.crc32)

    def differ(self, answer: Answer) -> bool:
        """Return True if the answer shows other bytes. False also if it shows nothing: see `confirms`."""
        if (stored := crc_of(answer)) is not None:
            return stored != self.crc32
        etag = etag_of(answer)
        if self.md5 is None or (etag and not MD5.fullmatch(etag)) or _is_encrypted(answer):
            return False
        return etag != self.md5.hex()

    def __str__(self) -> str:
        return f"the CRC-32 {self.crc32:08x}" + (f" and the MD5 {self.md5.hex()}" if self.md5 else "")


def checksum_text(answer: Answer) -> str:
    """The checksum or ETag of an answer, in words."""
    crc = crc_of(answer)
    return f"ETag {foreign(etag_of(answer) or 'nothing')}" if crc is None else f"CRC-32 {crc:08x}"


def encoded(crc: int) -> dict[str, str]:
    """A CRC-32 as a parameter."""
    return {"ChecksumCRC32": base64.b64encode(crc.to_bytes(4)).decode()}


def crc_of(answer: Answer) -> int | None:
    """The CRC-32 of all bytes in an answer; None if it has none, or only a checksum of the parts' checksums."""
    text = str(answer.get("ChecksumCRC32", ""))
    return int.from_bytes(base64.b64decode(text)) if _CRC.fullmatch(text) else None


def etag_of(answer: Answer) -> str:
    """The ETag without quotes; empty when there is none."""
    return str(answer.get("ETag", "")).strip('"')


def confirms(answer: Answer, upload: PendingUpload) -> bool:
    """Return True if the answer to a completion confirms the object's bytes, as far as this store can."""
    if not (etag := etag_of(answer)):
        return False
    if upload.checked:
        return crc_of(answer) == upload.crc32
    # The store has checked each part on arrival; an ETag that is an MD5 shows that their order is right.
    md5s = upload.md5_etag and _MD5_OF_MD5S.fullmatch(etag) and not _is_encrypted(answer)
    return not md5s or etag == upload.md5_etag


def _is_encrypted(answer: Answer) -> bool:
    """Return True if the object is encrypted so that its ETag looks like an MD5, but is not one."""
    return (
        OPAQUE in answer or answer.get("ServerSideEncryption", "AES256") != "AES256" or "SSECustomerAlgorithm" in answer
    )

"""Values as text in a path: percent-encoded. Different values stay different, also from null and from an empty text."""

import zlib
from hashlib import blake2b
from urllib.parse import quote

from kafka_archiver.model.object_keys import RESERVED

# `quote` never gives a plus sign, so no other value has these.
EMPTY = CUT = "+"
_DIGEST = 16


def segment(text: str, also: str = "", null_name: str = "", longest: int = 200) -> str:
    """A value as text of a path.

    :param also: characters to encode besides: those that stand between this and the next value of a folder.
    :param null_name: what stands for null; a value of this text is encoded.
    :param longest: a longer result is cut, and gets `+` and 32 hexadecimal digits of the value's BLAKE2b.
    """
    if not text:
        return EMPTY
    encoded = _encoded(text, also)
    if encoded in RESERVED or encoded in (".", "..", null_name):
        encoded = f"%{ord(encoded[0]):02X}{encoded[1:]}"
    if len(encoded) <= longest:
        return encoded
    digest = CUT + blake2b(_utf8(text), digest_size=_DIGEST).hexdigest()
    kept = ""
    for character in text:
        more = _encoded(character, also)
        if len(kept) + len(more) + len(digest) > longest:
            break
        kept += more
    return kept + digest


def bucket(text: str, buckets: int) -> str:
    """The bucket of a value, with leading zeros."""
    return f"{zlib.crc32(_utf8(text)) % buckets:0{len(str(buckets - 1))}d}"


def _encoded(text: str, also: str) -> str:
    quoted = quote(_utf8(text), safe="")
    for character in also:
        quoted = quoted.replace(character, f"%{ord(character):02X}")
    return quoted


def _utf8(text: str) -> bytes:
    # JSON allows half of a surrogate pair, which UTF-8 does not have.
    return text.encode("utf-8", "surrogatepass")

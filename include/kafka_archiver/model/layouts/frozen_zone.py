"""Local times of a zone whose data a plan has frozen: another release of the time zone database changes no path."""

import io
import zlib
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The years 1 to 9999 in UTC, and without their first and last day: those have a date in every zone.
_IN_UTC, _ELSEWHERE = (-62_135_596_800_000, 253_402_300_799_999), (-62_135_510_400_000, 253_402_214_399_999)


def packed(data: bytes) -> str:
    """The data of a zone (a TZif file) as text for a plan."""
    return b64encode(zlib.compress(data, 9)).decode()


@lru_cache(maxsize=64)
def zone_of(name: str, data: str) -> tzinfo:
    """The zone. `data`: as `packed` gives it; empty for UTC."""
    return ZoneInfo.from_file(io.BytesIO(zlib.decompress(b64decode(data))), name) if data else UTC


def bounds(zone: tzinfo) -> tuple[int, int]:
    """The first and the last moment with a local date, in milliseconds since 1970."""
    return _IN_UTC if zone is UTC else _ELSEWHERE


def local(milliseconds: int, zone: tzinfo) -> datetime:
    """The local time of a moment within the bounds."""
    return (_EPOCH + timedelta(milliseconds=milliseconds)).astimezone(zone)


def offset_ms(milliseconds: int, zone: tzinfo) -> int:
    """Return the milliseconds that the local time is ahead of UTC."""
    return int((local(milliseconds, zone).utcoffset() or timedelta()).total_seconds() * 1000)


def rounded(moment: datetime, every_ms: int) -> datetime:
    """The local time, rounded down to a multiple of `every_ms` since the local 1970 (0: not rounded)."""
    if not every_ms:
        return moment
    since = moment.replace(tzinfo=UTC) - _EPOCH
    return moment - since % timedelta(milliseconds=every_ms)

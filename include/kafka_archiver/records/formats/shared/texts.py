"""Values as text, as vectors: what JSON lines and CSV have in common. Arrays of large_binary; null for null."""

import msgspec
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.vectors import (
    Piece,
    fixed,
    joined,
    large_binaries,
    large_binary,
    lengths,
    raw,
    spread,
    text_of,
    valid,
    wrapped,
)

_PER_SECOND = {"s": 1, "ms": 1000, "us": 1000**2, "ns": 1000**3}
# The first second of the year 1, and of the year 10000.
_YEARS = (-62_135_596_800, 253_402_300_800)
_DAY = 86_400
# JSON escapes a character by a backslash, except most control characters: these by four bytes more.
_LONG = np.zeros(256, bool)
_LONG[list({*range(32)} - {*b"\b\t\n\f\r"})] = True
_MORE = 4
# Up to this scale, Arrow never writes a decimal with an exponent.
_NO_EXPONENT = 6
# Writes base64 as a JSON string, faster than the standard library.
_ENCODER = msgspec.json.Encoder()
# The digits of each two bytes, and their places in a UUID.
_HEX = np.frombuffer(np.arange(1 << 16, dtype=np.uint16).tobytes().hex().encode(), np.uint32)
_PLACES = (0, 4, 9, 14, 19, 24, 28, 32)
# The characters of a date.
_DATE = 10


def spelt(values: pa.Array) -> pa.Array:
    """Numbers, times, booleans and text, as Arrow spells them."""
    return values.cast(pa.large_string()).view(pa.large_binary())


def escaped(text: pa.Array) -> pa.Array:
    """Text as JSON strings have it between their quotes."""
    data, ends = text_of(text)
    low = data < ord(" ")
    places = np.flatnonzero(low | (data == ord('"')) | (data == ord("\\")))
    if not len(places):
        return text
    ends = ends - ends[0]
    longer = np.searchsorted(places, ends)
    if low.any():
        longer += _MORE * np.searchsorted(places[_LONG[data[places]]], ends)
    try:
        whole = orjson.dumps(str(data.data, "utf-8"))[1:-1]
    except UnicodeDecodeError:
        # Arrow may hold any bytes in the place of a null.
        if (present := valid(text)) is None:
            raise
        return spread(escaped(text.drop_null()), present)
    return large_binaries(ends + longer, pa.py_buffer(whole), valid(text))


def in_base64(values: pa.Array) -> pa.Array:
    """Bytes as base64."""
    sizes = lengths(values)
    # Each value begins at a multiple of three bytes, so that one call encodes all.
    fill = -sizes % 3
    zeros = large_binaries(np.concatenate([[0], np.cumsum(fill)]), np.zeros(fill.sum(), np.uint8))
    data, ends = text_of(joined(len(values), [values.cast(pa.large_binary()), zeros]))
    whole = bytearray()
    _ENCODER.encode_into(data.data, whole)
    text = np.frombuffer(whole, np.uint8)[1:-1]
    ends = (ends - ends[0]) // 3 * 4
    text[ends[1:][fill >= 1] - 1] = ord("=")
    text[ends[1:][fill == 2] - 2] = ord("=")
    return large_binaries(ends, text, valid(values))


def floats(values: pa.Array) -> pa.Array:
    """Numbers as orjson writes them: the fewest digits; `null` for NaN and infinities."""
    if not len(values):
        return pa.nulls(0, pa.large_binary())
    numbers = np.ascontiguousarray(values.cast(pa.float64()).fill_null(0).to_numpy())
    text = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
    commas = np.flatnonzero(np.frombuffer(text, np.uint8) == ord(","))
    ends = np.concatenate([[0], commas, [len(text)]])
    ends[1:] -= np.arange(len(values))
    return large_binaries(ends, pa.py_buffer(text.replace(b",", b"")), valid(values))


def decimals(values: pa.Array) -> pa.Array:
    """Decimals with all digits of their scale, never with an exponent."""
    kind = values.type
    if kind.scale <= _NO_EXPONENT:
        return spelt(values)
    whole = pa.decimal256 if pa.types.is_decimal256(kind) else pa.decimal128
    number = pa.Array.from_buffers(whole(kind.precision, 0), len(values), values.buffers(), offset=values.offset)
    text = number.cast(pa.string())
    minus = pc.if_else(pc.starts_with(text, "-"), large_binary(b"-"), large_binary(b""))
    digits = pc.ascii_lpad(pc.ascii_ltrim(text, "-"), kind.scale + 1, "0").cast(pa.large_binary())
    before, after = pc.binary_slice(digits, 0, -kind.scale), pc.binary_slice(digits, -kind.scale)
    return pc.binary_join_element_wise(minus, before, large_binary(b"."), after, large_binary(b""))


def moments(values: pa.Array, between: bytes, around: bytes, null: bytes) -> list[Piece]:
    """Dates and timestamps in ISO 8601, with Z for an instant; outside the years 1 to 9999, their numbers.

    :param between: the byte between date and time.
    :param around: precedes and follows the text, not the numbers.
    :param null: the text of a null.
    """
    kind, after = values.type, around
    inside = in_iso_years(values)
    if not inside.all():
        where = pa.array(inside)
        text = joined(len(values), moments(pc.if_else(where, values, None), between, around, null))
        return [pc.if_else(where, text, spelt(units(values)))]
    if pa.types.is_timestamp(kind):
        after = b"Z" + around if kind.tz else around
        # Arrow has text of every year if there is no zone.
        values = values.cast(pa.timestamp(kind.unit))
    spelt_values = spelt(values)
    if pa.types.is_timestamp(kind) and between != b" ":
        # Nobody else has this memory yet.
        text, starts = text_of(spelt_values)
        present = valid(spelt_values)
        text[(starts[:-1] if present is None else starts[:-1][present]) + _DATE] = between[0]
    return wrapped(spelt_values, around, after, null)


def in_iso_years(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Return the dates or timestamps in the years 1 to 9999, which ISO 8601 has."""
    per_second, seconds = (1, _DAY) if pa.types.is_date(values.type) else (_PER_SECOND[values.type.unit], 1)
    first, end = (second * per_second // seconds for second in _YEARS)
    # Nanoseconds begin within a second, of which Arrow reads no text.
    first = max(first, -(2**63 // per_second) * per_second)
    numbers = units(values).fill_null(0).to_numpy()
    is_inside: npt.NDArray[np.bool_] = (numbers >= first) & (numbers < end)
    return is_inside


def units(moments: pa.Array) -> pa.Array:
    """Dates, times or timestamps as the numbers that Arrow has for them."""
    return moments.view(pa.int32() if moments.type.bit_width == 32 else pa.int64())


def uuids(values: pa.Array) -> pa.Array:
    """UUIDs of 16 bytes."""
    if (present := valid(values)) is not None:
        return spread(uuids(values.drop_null()), present)
    text = np.full((len(values), 36), ord("-"), np.uint8)
    for place, two in zip(_PLACES, raw(values).view(np.uint16).T, strict=True):
        text[:, place : place + 4].view(np.uint32)[:, 0] = _HEX[two]
    return fixed(text)

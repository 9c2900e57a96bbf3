"""Confluent's frame before the encoded data: byte 0, then the schema's id in four bytes."""

_MAGIC, _FRAME = b"\0", 5


def schema_id(data: bytes) -> int | None:
    """The schema id of framed bytes; None if the bytes do not look framed."""
    return int.from_bytes(data[1:_FRAME]) if data[:1] == _MAGIC and len(data) >= _FRAME else None

"""The decoders without a schema: bytes as they are, and text."""

import pyarrow as pa

from kafka_archiver.records.decode.base import Decoded, DecoderInput
from kafka_archiver.records.decode.undecodable import decode_in_halves


class BytesDecoder:
    """Bytes as they are."""

    def __init__(self, of: DecoderInput) -> None:
        self.field = pa.field(of.column, pa.binary())

    def decode(self, data: pa.Array) -> Decoded:
        return Decoded(data.cast(pa.binary()), {})


class StringDecoder:
    """UTF-8 text."""

    def __init__(self, of: DecoderInput) -> None:
        self.field = pa.field(of.column, pa.string())

    def decode(self, data: pa.Array) -> Decoded:
        return decode_in_halves(data, _text, pa.string())


def _text(data: pa.Array) -> pa.Array:
    try:
        return data.cast(pa.string())
    except pa.ArrowInvalid:
        raise ValueError("the bytes are not UTF-8 text; set `decode: bytes`, or correct the producer") from None

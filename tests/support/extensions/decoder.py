"""A decoder: text, from right to left. Empty values are refused."""

import pyarrow as pa

from kafka_archiver.model.decoders import DecoderType
from kafka_archiver.records.decode.base import Decoded, DecoderInput


class Reversed:
    def __init__(self, column: str) -> None:
        self.field = pa.field(column, pa.string())

    def decode(self, data: pa.Array) -> Decoded:
        texts = [None if not value else value.decode()[::-1] for value in data.to_pylist()]
        reasons = {row: "it is empty" for row, value in enumerate(data.to_pylist()) if value == b""}
        return Decoded(pa.array(texts, pa.string()), reasons)


def make(of: DecoderInput) -> Reversed:
    return Reversed(of.column)


REVERSED = DecoderType("reversed", f"{__name__}:make", columns="always")

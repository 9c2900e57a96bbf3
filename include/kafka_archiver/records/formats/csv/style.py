"""Quotes and nulls of a CSV file."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafka_archiver.records.vectors import Piece, large_binaries, text_of, valid, wrapped


class Style(NamedTuple):
    """The quote, and the unquoted text of a null."""

    quote: bytes
    null: bytes

    def bare(self, values: pa.Array) -> list[Piece]:
        """The values without quotes."""
        return wrapped(values, b"", b"", self.null)

    def quoted(self, values: pa.Array) -> list[Piece]:
        """The values, in which quotes are doubled already, between quotes."""
        return wrapped(values, self.quote, self.quote, self.null)

    def text(self, value: bytes) -> bytes:
        """A constant between quotes."""
        return self.quote + self._twice(value) + self.quote

    def doubled(self, pieces: list[Piece]) -> list[Piece]:
        """The pieces with each quote twice."""
        return [self._twice(piece) if isinstance(piece, bytes) else self._twice_in_each(piece) for piece in pieces]

    def _twice(self, text: bytes) -> bytes:
        return text.replace(self.quote, self.quote * 2)

    def _twice_in_each(self, values: pa.Array) -> pa.Array:
        text, ends = text_of(values)
        places = np.flatnonzero(text == self.quote[0])
        if not len(places):
            return values
        ends = ends - ends[0]
        wider = ends + np.searchsorted(places, ends)
        return large_binaries(wider, pa.py_buffer(self._twice(text.tobytes())), valid(values))

"""What a layout is."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # Whoever only reads manifests does without them.
    import pyarrow as pa

    from kafka_archiver.columns import Int64s


class Filed(Protocol):
    """What a layout is told of an object. Timestamps in milliseconds since 1970."""

    @property
    def path(self) -> str: ...

    @property
    def min_timestamp(self) -> int: ...

    @property
    def max_timestamp(self) -> int: ...


class Layout(Protocol):
    """Files records in parts: those of a chunk that are of one part are one object.

    What part a record is of depends on nothing but the record. A part has one path, a path one part, and no path is
    that of two layouts.
    """

    @property
    def name(self) -> str:
        """Its name in the plan."""

    def parts(self, batch: "pa.RecordBatch") -> "Int64s":
        """The part of each record. A batch has at least the columns `offset` and `timestamp`."""

    def path(self, part: int) -> str:
        """The folders of a part below the topic's, without a slash at either end."""

    def parse(self, path: str) -> int:
        """The part that `path` is of.

        :raises ValueError: it is no path of this layout.
        """

    def hours(self, entry: Filed) -> Collection[int | None]:
        """The hours (whole hours since 1970) that records of an object may be of; None: without a usable time."""

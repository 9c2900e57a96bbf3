"""The interface of a layout."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # Not at runtime: code that only reads manifests does not need them.
    import pyarrow as pa

    from kafka_archiver.columns import Int64s


class Filed(Protocol):
    """What a layout needs to know of an object. Timestamps in milliseconds since 1970."""

    @property
    def path(self) -> str: ...

    @property
    def min_timestamp(self) -> int: ...

    @property
    def max_timestamp(self) -> int: ...


class Layout(Protocol):
    """Files records in parts: the records of one chunk and one part become one object.

    A record's part depends on the record alone. Each part has one path, each path belongs to one part, and no two
    layouts share a path.
    """

    @property
    def name(self) -> str:
        """The layout's name in the plan."""

    @property
    def columns(self) -> Collection[str]:
        """The columns that readers take from its paths: `date` of `date=2026-11-21`."""

    def parts(self, batch: "pa.RecordBatch") -> "Int64s":
        """The part of each record. A batch has at least the columns `offset` and `timestamp`."""

    def path(self, part: int) -> str:
        """The folders of a part below the topic's, without a slash at either end."""

    def parse(self, path: str) -> int:
        """The part that has this path.

        :raises ValueError: it is not a path of this layout.
        """

    def hours(self, entry: Filed) -> Collection[int | None]:
        """The hours (whole hours since 1970) that an object's records may belong to; None: without a usable time."""

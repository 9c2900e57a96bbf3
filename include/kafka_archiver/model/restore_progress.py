"""The progress of a restore in one target partition: the metadata of an offset of its group. Pure."""

from typing import NamedTuple, Self

from pydantic import Field, ValidationError

from kafka_archiver.values.documents import Value


class Place(NamedTuple):
    """Where a lane goes on: the index of its source partition (`RestorePlan.sources_of`), and an offset of that."""

    source: int
    offset: int


START = Place(0, 0)


class RestoreProgress(Value):
    """The progress of one target partition. The broker limits the length of its JSON.

    `plan`: the digest of the plan. `source`, `offset`: the place of the next record. `records`, `bytes`: written so
    far; keys, values and headers. `digest`: of these records, which goes on from batch to batch.
    """

    plan: str
    source: int = Field(default=0, ge=0)
    offset: int = Field(default=0, ge=0)
    records: int = Field(default=0, ge=0)
    bytes: int = Field(default=0, ge=0)
    digest: str = ""

    @property
    def place(self) -> Place:
        """The place of the next record."""
        return Place(self.source, self.offset)

    def to_stamp(self) -> str:
        """Return the metadata of the group's offset."""
        return self.model_dump_json()

    @classmethod
    def from_stamp(cls, stamp: str) -> Self | None:
        """Return the progress that a group's offset has; None: somebody else has set the offset."""
        try:
            return cls.model_validate_json(stamp)
        except ValidationError:
            return None

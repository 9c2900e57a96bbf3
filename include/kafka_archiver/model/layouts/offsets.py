"""The layout `offsets`: by buckets of offsets, <topic>/partition=3/offsets=00000000000000100000."""

from typing import Annotated

from pydantic import Field

from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.template import parsed
from kafka_archiver.values.documents import Value


class OffsetsOptions(Value):
    """`offsets`: how many offsets each bucket has."""

    offsets: Annotated[int, Field(gt=0, le=10**15)]


class OffsetBuckets:
    """Files records by their offsets. A folder's name is its first offset."""

    name = "offsets"
    options = OffsetsOptions

    def form(self, options: OffsetsOptions) -> PathForm:
        """No record is without a place."""
        folders = parsed(f"{{topic}}/partition={{partition}}/offsets={{offset/{options.offsets}}}")
        return PathForm(folders, columns=("partition", "offsets"))

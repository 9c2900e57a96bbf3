"""The layouts `topic_partition`, <topic>/partition=3, and `offsets`, with a folder for each so many offsets."""

from typing import Annotated

from pydantic import Field

from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.template import parsed
from kafka_archiver.values.documents import Value
from kafka_archiver.values.yaml_values import YamlValue


class TopicPartitionLayout:
    """Files records by the partition alone: one object for each chunk."""

    name = "topic_partition"
    options = Value

    def form(self, options: Value) -> PathForm:  # noqa: ARG002 - it has none
        """No record is without a place."""
        return PathForm(parsed("{topic}/partition={partition}"), columns=("partition",))


class OffsetsOptions(YamlValue):
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

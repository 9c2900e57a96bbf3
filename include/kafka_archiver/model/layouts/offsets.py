"""The layouts `topic_partition`, <topic>/partition=3, and `offsets`, with a folder for each so many offsets."""

from typing import Annotated

from pydantic import Field

from kafka_archiver.model.layouts.base import NamedLayout
from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.template import parsed
from kafka_archiver.values.documents import Value
from kafka_archiver.values.yaml_values import YamlValue


class OffsetsOptions(YamlValue):
    """`offsets`: how many offsets each bucket has."""

    offsets: Annotated[int, Field(gt=0, le=10**15)]


def _partition(_: Value) -> PathForm:
    return PathForm(parsed("{topic}/partition={partition}"), columns=("partition",))


def _buckets(options: OffsetsOptions) -> PathForm:
    folders = parsed(f"{{topic}}/partition={{partition}}/offsets={{offset/{options.offsets}}}")
    return PathForm(folders, columns=("partition", "offsets"))


# One object for each chunk.
TOPIC_PARTITION = NamedLayout("topic_partition", Value, _partition)
# A folder's name is its first offset.
OFFSETS = NamedLayout("offsets", OffsetsOptions, _buckets)

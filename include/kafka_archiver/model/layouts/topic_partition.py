"""The layout `topic_partition`: <topic>/partition=3."""

from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.template import parsed
from kafka_archiver.values.documents import Value


class TopicPartitionLayout:
    """Files records by the partition alone: one object for each chunk."""

    name = "topic_partition"
    options = Value

    def form(self, options: Value) -> PathForm:  # noqa: ARG002 - it has none
        """No record is without a place."""
        return PathForm(parsed("{topic}/partition={partition}"), columns=("partition",))

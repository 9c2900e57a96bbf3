"""The layout `topic_partition`: <topic>/partition=3."""

from kafka_archiver.documents import Value
from kafka_archiver.layouts.form import Form
from kafka_archiver.layouts.template import parsed


class TopicPartition:
    """Files records by the partition alone: one object for each chunk."""

    name = "topic_partition"
    options = Value

    def form(self, options: Value) -> Form:  # noqa: ARG002 - it has none
        """No record is without a place."""
        return Form(parsed("{topic}/partition={partition}"), columns=("partition",))

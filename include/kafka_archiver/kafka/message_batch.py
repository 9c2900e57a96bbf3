"""The messages that a reader takes at once, whichever reader it is."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa
from confluent_kafka import KafkaError

from kafka_archiver.values.columns import Int64s


class Fault(NamedTuple):
    """An error among the records. `before`: how many records come before it; `offset` is 0 if it has none."""

    before: int
    error: KafkaError
    partition: int
    offset: int


class MessageBatch(Protocol):
    """Records and errors of one consumer, in their order."""

    @property
    def counted(self) -> int:
        """The bytes of the values, which librdkafka counts where it limits its queue."""

    @property
    def uncounted(self) -> int:
        """The bytes of keys and headers, whether or not a batch has them; approximate."""

    def more(self, number: int, timeout: float) -> bool:
        """Take up to `number` further messages, those that come within `timeout` seconds.

        False: there are none, or the last is an error.
        """

    def __len__(self) -> int:
        """Records and errors."""

    @property
    def offsets(self) -> Int64s:
        """The offsets of the records."""

    @property
    def faults(self) -> Sequence[Fault]:
        """The errors."""

    def places(self, count: int) -> Sequence[tuple[str, int]]:
        """Return topics and partitions of the first `count` records: the first, and others if there are any."""

    def batches(self, count: int, whole: bool) -> list[pa.RecordBatch]:
        """Return the first `count` records as a batch, or as several if their bytes do not fit one.

        :param whole: the columns of `RECORD` without topic and partition, and `UNREAD` if a header's key is not UTF-8;
            else those of `VALUE`.
        """

    def close(self) -> None:
        """Give the messages back. Batches stay."""

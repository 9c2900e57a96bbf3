"""librdkafka's transactional producer through its C interface: drain.c hands Arrow columns to it."""

import ctypes
from collections.abc import Callable, Mapping
from ctypes import byref, c_void_p

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from kafka_archiver.kafka.drain.handle import Handle, text_of
from kafka_archiver.kafka.drain.library import PRODUCER, Answers, Cells, Library, Rows
from kafka_archiver.kafka.sending import PAUSE, Answer
from kafka_archiver.values.ranges import TopicPartition

# Records in the queue and in flight, without waiting for their answers.
_PURGED = 0x1 | 0x2 | 0x4
# How long to wait for the end of a transaction that is aborted.
_ABORT = 8.0


class DrainSender:
    """Implements `Sender`: no Python object a record.

    :param error_cb: takes librdkafka's errors.
    :raises KafkaException: librdkafka refuses the properties.
    """

    def __init__(
        self,
        library: Library,
        config: Mapping[str, str | int],
        error_cb: Callable[[KafkaError], None],
        name: TopicPartition,
    ) -> None:
        self._library, self._kafka, self._name = library, library.kafka, name
        self._answers, self._sent, self._is_open = Answers(), 0, False
        self._handle = Handle(library, PRODUCER, config, error_cb, self._prepare)
        self._producer = self._handle.client
        self._topic = self._kafka.topic_new(self._producer, name.topic.encode(), None)

    def _prepare(self, conf: int) -> None:
        self._kafka.conf_set_opaque(conf, ctypes.addressof(self._answers))
        self._kafka.conf_set_dr_msg_cb(conf, ctypes.cast(self._library.drain.answer, c_void_p))

    def init(self, seconds: float) -> None:
        self._require(self._kafka.init_transactions(self._producer, _milliseconds(seconds)))

    def begin(self) -> None:
        self._require(self._kafka.begin_transaction(self._producer))
        ctypes.memset(byref(self._answers), 0, ctypes.sizeof(Answers))
        self._sent, self._is_open = 0, True

    def send(self, batch: pa.RecordBatch) -> None:
        columns, done, error = ArrowRows(batch), 0, c_void_p()
        while done < batch.num_rows:
            done += self._library.drain.send(
                *(byref(self._library.producing), self._producer, self._topic, self._name.partition),
                *(byref(columns.rows), done, batch.num_rows, self._sent + done + 1, byref(error)),
            )
            self._require(error.value)
            # Its queue is full, or all is done.
            self.poll(PAUSE if done < batch.num_rows else 0)
        self._sent += done

    def poll(self, seconds: float) -> None:
        self._kafka.poll(self._producer, _milliseconds(seconds))

    def waiting(self) -> int:
        return self._sent - int(self._answers.records)

    def flush(self, seconds: float) -> int:
        self._kafka.flush(self._producer, _milliseconds(seconds))
        return self.waiting()

    def answer(self) -> Answer:
        answers = self._answers
        if answers.failed:
            return Answer(error=KafkaError(int(answers.error)))
        return Answer(_offset(answers.first), _offset(answers.last)) if answers.records else Answer()

    def send_offset(self, group: str, offset: int, stamp: str, seconds: float) -> None:
        metadata = self._kafka.consumer_group_metadata_new(group.encode())
        places = self._kafka.topic_partition_list_new(1)
        try:
            place = self._kafka.topic_partition_list_add(places, self._name.topic.encode(), self._name.partition)[0]
            # With a NUL, as confluent_kafka: it reads on until there is one, behind the memory of a text without.
            text = stamp.encode() + b"\0"
            # The list frees it.
            place.metadata = self._kafka.mem_malloc(None, len(text))
            ctypes.memmove(place.metadata, text, len(text))
            place.metadata_size, place.offset = len(text), offset
            arguments = (self._producer, places, metadata, _milliseconds(seconds))
            self._require(self._kafka.send_offsets_to_transaction(*arguments))
        finally:
            self._kafka.topic_partition_list_destroy(places)
            self._kafka.consumer_group_metadata_destroy(metadata)

    def commit(self, seconds: float) -> None:
        self._require(self._kafka.commit_transaction(self._producer, _milliseconds(seconds)))
        self._is_open = False

    def purge(self) -> None:
        self._kafka.purge(self._producer, _PURGED)

    def close(self) -> None:
        producer, self._producer = self._producer, 0
        if not producer:
            return
        # A fenced producer cannot abort, and whoever fenced it has aborted.
        if self._is_open and (error := self._kafka.abort_transaction(producer, _milliseconds(_ABORT))):
            self._kafka.error_destroy(error)
        self._kafka.topic_destroy(self._topic)
        self._kafka.destroy(producer)

    def _require(self, error: int | None) -> None:
        """Check that librdkafka has given no error. :raises KafkaException: it has."""
        if error:
            code, text = self._kafka.error_code(error), text_of(self._kafka.error_string(error))
            is_fatal = bool(self._kafka.error_is_fatal(error))
            self._kafka.error_destroy(error)
            raise KafkaException(KafkaError(code, text, fatal=is_fatal))


class ArrowRows:
    """A batch of `COLUMNS` as drain.c reads it. It must live for as long as `rows` is used."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        headers = batch.column("headers")
        pairs = headers.flatten()
        self._columns = [batch.column("value"), batch.column("key"), pairs.field(0), pairs.field(1)]
        self._others = [batch.column("timestamp"), headers]
        times, ends = ((column.buffers()[1], column.offset) for column in self._others)
        self.rows = Rows(times[0].address + 8 * times[1], ends[0].address + 4 * ends[1], *map(_cells, self._columns))


def _cells(column: pa.Array) -> Cells:
    present, ends, content = column.buffers()
    return Cells(_address(present) if column.null_count else None, column.offset, _address(ends), _address(content))


def _address(buffer: pa.Buffer | None) -> int | None:
    """Return where memory is; Arrow may have none for the ends, or the bytes, of nothing."""
    return None if buffer is None else int(buffer.address)


def _offset(number: int) -> int | None:
    """Return an offset; None: the broker did not say it."""
    return int(number) if number >= 0 else None


def _milliseconds(seconds: float) -> int:
    return int(1000 * seconds)

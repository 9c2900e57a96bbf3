"""The transactional writer of one partition. It writes records and the restore's progress in one transaction.

Its transactional id is of the partition, not of the attempt: whoever creates a writer fences the earlier one, and what
that had not committed is aborted. After any answer that is not sure, a writer is of no use: close it, create another.
"""

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import accumulate, pairwise, repeat
from typing import Any, NamedTuple, NoReturn

import confluent_kafka
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from kafka_archiver.kafka.complaints import Complaints
from kafka_archiver.kafka.failures import translate
from kafka_archiver.kafka.java import native_properties
from kafka_archiver.messages.errors import ArchiverError, FencedError, PermanentError, TransientError, UncertainError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.values.ranges import Range, TopicPartition

# Seconds for each request of a transaction; how much more a call may take, as some ignore their timeout; and to close.
SECONDS, MORE, CLOSE = 60.0, 30.0, 10.0
# The broker aborts a transaction that is open for longer. A restore's are far shorter.
TRANSACTION_MS = 300_000
_TUNING = {
    "linger.ms": 20,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 64 << 10,
    # The broker's limit decides; a smaller one of the client would refuse records that fit.
    "message.max.bytes": 1_000_000_000,
}
# librdkafka puts records together up to this size, and the broker refuses the batch as it would a record.
LARGEST_BATCH = 1_000_000
_FENCED = {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}
_REFUSED = {
    KafkaError.MSG_SIZE_TOO_LARGE: "it is larger than the topic's max.message.bytes; raise it",
    KafkaError.INVALID_TIMESTAMP: "its timestamp is out of the topic's message.timestamp.before.max.ms or "
    "after.max.ms; raise them for the time of the restore",
    KafkaError.INVALID_RECORD: "the broker refuses it (a compacted topic takes no record without a key)",
    KafkaError.POLICY_VIOLATION: "a policy of the broker refuses it",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the credentials may not write; grant them Write on the topic",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "grant the credentials Write and Describe on the "
    "transactional id",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "grant the credentials IdempotentWrite on the cluster",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "grant the credentials Read on the group of the restore",
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "the brokers' transaction.max.timeout.ms is less than five minutes; raise "
    "it, or set transaction.timeout.ms in the Kafka connection",
}
# Producers whose last call never returned. To free them would wait for that call.
_abandoned: list[Any] = []


class _Delivery:
    """The answer about one record: its offset, or an error. librdkafka calls it while the producer is polled."""

    def __init__(self) -> None:
        self.offset: int | None = None
        self.error: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Any) -> None:
        self.error = error
        self.offset = None if error else message.offset()


class _Open(NamedTuple):
    """An open transaction. `first`, `last`: the answers about its first and its last record; `rows`: their number."""

    first: _Delivery
    last: _Delivery
    rows: int


class TransactionalWriter:
    """Writes one partition. Creating it fences every earlier writer of the partition, and waits until what that had
    not committed is aborted.

    :param transactional_id: the same for every attempt at this partition.
    :param largest_batch: the topic's max.message.bytes.
    :raises PermanentError: the brokers refuse the credentials or the transactional id.
    :raises TransientError: they do not answer.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        transactional_id: str,
        name: TopicPartition,
        largest_batch: int = LARGEST_BATCH,
        seconds: float = SECONDS,
    ) -> None:
        self._name, self._seconds = name, seconds
        self._complaints = Complaints(properties["bootstrap.servers"])
        self._open: _Open | None = None
        # The metadata of groups: each needs a consumer.
        self._groups: dict[str, Any] = {}
        config: dict[str, Any] = {
            **_TUNING,
            "transaction.timeout.ms": TRANSACTION_MS,
            "batch.size": max(1, min(LARGEST_BATCH, largest_batch)),
            **native_properties(properties),
            "transactional.id": transactional_id,
            "enable.idempotence": True,
            "error_cb": self._complaints,
            "log_level": 2,
        }
        try:
            self._producer = confluent_kafka.Producer(config)
        except KafkaException as error:
            raise translate(error.args[0], "start a producer", self._complaints.brokers) from error
        self._do(f"become the writer of {name}", lambda: self._producer.init_transactions(seconds), began=False)

    def send(self, batch: pa.RecordBatch) -> None:
        """Send records in the open transaction, which begins with the first one.

        :param batch: `timestamp` in milliseconds, `key`, `value`, `headers`, in any variant of their types.
        :raises UncertainError, FencedError, PermanentError: the transaction will not be committed.
        """
        if not batch.num_rows:
            return
        if self._open is None:
            self._do("begin a transaction", self._producer.begin_transaction)
        final = _Delivery()
        first, rows = (self._open.first, self._open.rows) if self._open else (_Delivery(), 0)
        last = batch.num_rows - 1
        if self._open is None and last:
            self._produce(batch.slice(0, 1), first)
            batch = batch.slice(1)
        elif self._open is None:
            first = final
        self._produce(batch.slice(0, batch.num_rows - 1), None)
        self._produce(batch.slice(batch.num_rows - 1), final)
        self._producer.poll(0)
        self._open = _Open(first, final, rows + last + 1)

    def _produce(self, batch: pa.RecordBatch, answer: _Delivery | None) -> None:
        """Produce records; `answer` gets the broker's answer about each.

        `produce_batch` of confluent-kafka drops timestamps and headers, so it is a call a record: the arguments by
        position, which saves a third of the call.
        """
        produce, topic, partition = self._producer.produce, self._name.topic, self._name.partition
        rows = zip(
            batch.column("value").to_pylist(),
            batch.column("key").to_pylist(),
            batch.column("timestamp").to_pylist(),
            _header_pairs(batch.column("headers")),
            strict=True,
        )
        try:
            for value, key, timestamp, headers in rows:
                while True:
                    try:
                        produce(topic, value, key, partition, answer, None, timestamp, headers)
                        break
                    except BufferError:
                        self._producer.poll(0.05)
        except KafkaException as error:
            self._raise(error.args[0], f"write a record to {self._name}", error)

    def commit(self, group: str, stamp: str) -> Range:
        """Commit the open transaction, and with it the offset behind its last record as the progress of the group.

        Returns the offsets from its first record to behind its last one; more than its records if another writer's are
        in between.

        :param stamp: the metadata of the progress.
        :raises UncertainError: it may be committed or not. :raises FencedError, PermanentError: it is not.
        """
        transaction = self._open
        assert transaction, "no transaction is open"
        if self._do(f"write to {self._name}", lambda: self._producer.flush(self._seconds)):
            raise UncertainError(f"the brokers did not take all records for {self._name} within {self._seconds:.0f} s")
        for answer in (transaction.first, transaction.last):
            if answer.error:
                self._raise(answer.error, f"write a record to {self._name}")
        start, last = transaction.first.offset, transaction.last.offset
        if start is None or last is None or start < 0 or last < start + transaction.rows - 1:
            # A batch that was sent twice: the broker has it, and does not say where. Or a record failed.
            raise UncertainError(f"the brokers did not say where the records for {self._name} are")
        place = confluent_kafka.TopicPartition(self._name.topic, self._name.partition, last + 1, stamp)
        if group not in self._groups:
            self._groups[group] = _group_metadata(self._complaints.brokers, group)
        what = f"commit records of {self._name} with the progress in group {group}"
        self._do(what, lambda: self._producer.send_offsets_to_transaction([place], self._groups[group], self._seconds))
        self._do(what, lambda: self._producer.commit_transaction(self._seconds))
        self._open = None
        return Range(start, last + 1)

    def close(self) -> None:
        """Close the producer. An open transaction is aborted, by it or by whoever comes next."""
        producer = self.__dict__.pop("_producer", None)
        if producer is not None:
            producer.purge(blocking=False)
            if not _in_time(lambda: _closed(producer), CLOSE):
                _abandoned.append(producer)

    def _do(self, what: str, call: Callable[[], Any], began: bool = True) -> Any:
        """Call the client, for a limited time: with a coordinator that is down, some calls ignore their timeouts."""
        answer: list[Any] = []

        def run() -> None:
            try:
                answer.append(call())
            except SystemError as error:
                # A fatal error, while librdkafka called an answer's callback.
                answer.append(error.__cause__ or error)
            except (KafkaException, RuntimeError) as error:
                answer.append(error)

        if not _in_time(run, self._seconds + MORE):
            _abandoned.append(self.__dict__.pop("_producer"))
            raise UncertainError(f"{self._complaints.brokers}: no answer to: {what}")
        [result] = answer
        if isinstance(result, KafkaException):
            self._raise(result.args[0], what, result, began)
        if isinstance(result, BaseException):
            raise UncertainError(f"{self._complaints.brokers}: could not {what}: {result}") from result
        return result

    def _raise(self, error: KafkaError, what: str, cause: Exception | None = None, began: bool = True) -> NoReturn:
        code, brokers = error.code(), self._complaints.brokers
        if code in _FENCED:
            raise FencedError(f"{brokers}: could not {what}: another attempt writes {self._name} now") from cause
        if code in _REFUSED:
            reason = f"{_REFUSED[code]} ({foreign(error.str())})"
            raise PermanentError(f"{brokers}: could not {what}: {reason}") from cause
        translated: ArchiverError = self._complaints.translate(error, what)
        if isinstance(translated, PermanentError):
            raise translated from cause
        kind = UncertainError if began else TransientError
        raise kind(str(translated)) from cause


def _header_pairs(headers: pa.Array) -> Iterator[list[tuple[str, str | bytes | None]] | None]:
    """Return the headers of each record as the client takes them; None for none."""
    items = headers.flatten()
    if not len(items):
        # Most topics have no headers, and Python objects for them cost as much as the records.
        return repeat(None, len(headers))
    pairs = list(zip(items.field("key").to_pylist(), items.field("value").to_pylist(), strict=True))
    ends = list(accumulate(headers.value_lengths().to_pylist()))
    return (pairs[start:end] or None for start, end in pairwise([0, *ends]))


def _in_time(call: Callable[..., Any], seconds: float) -> bool:
    """Call in a thread. Returns False if the call has not returned in time; it goes on, and nobody waits for it."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def _closed(producer: Any) -> None:
    # A fenced producer cannot abort, and says so.
    with suppress(KafkaException, RuntimeError, SystemError, RuntimeWarning), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        producer.close()


def _group_metadata(brokers: str, group: str) -> Any:
    """Return the name of a group as the producer wants it: of a consumer that has not joined it."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": brokers, "group.id": group, "log_level": 2})
    try:
        return consumer.consumer_group_metadata()
    finally:
        consumer.close()

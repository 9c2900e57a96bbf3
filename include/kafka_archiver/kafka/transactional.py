"""The transactional writer of one partition. It writes records and the restore's progress in one transaction.

Its transactional id (`work.restore.partition_writer`) is of the partition, not of the attempt: whoever creates a writer
fences the earlier one, and what that had not committed is aborted. After any answer that is not sure, a writer is of no
use: close it, create another.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from kafka_archiver.kafka.drain.handle import is_possible
from kafka_archiver.kafka.drain.library import library
from kafka_archiver.kafka.drain.sender import DrainSender
from kafka_archiver.kafka.failures import Complaints, translate
from kafka_archiver.kafka.java_properties import native_properties
from kafka_archiver.kafka.sending import PAUSE, ObjectSender, Sender
from kafka_archiver.messages.errors import (
    ArchiverError,
    ConfigError,
    FencedError,
    PermanentError,
    TransientError,
    UncertainError,
)
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.records.formats.shared.records import COLUMNS, normalised
from kafka_archiver.values.ranges import Range, TopicPartition

# Seconds for each request of a transaction; how much more a call may take, as some ignore their timeout; and to close.
SECONDS, MORE, CLOSE = 60.0, 30.0, 10.0
# Seconds after which to look if a record has failed, while others have no answer yet.
FLUSH = 0.5
# The broker aborts a transaction that is open for longer. A restore's are far shorter.
TRANSACTION_MS = 300_000
# Less than this, the brokers would abort them, and it would look like another attempt's doing.
LEAST_TRANSACTION_MS = 30_000
_TUNING = {
    # A commit does not wait for it.
    "linger.ms": 200,
    "compression.type": "lz4",
    "batch.num.messages": 1_000_000,
}
# A connection does not change these.
_FIXED = {
    # Not its limits decide how much is on its way: a record that is larger would wait for room for ever.
    "queue.buffering.max.messages": 10_000_000,
    "queue.buffering.max.kbytes": 2_097_151,
    # The broker's limit decides; a smaller one of the client would refuse records that fit.
    "message.max.bytes": 1_000_000_000,
    # The answers say where records are.
    "delivery.report.only.error": False,
    "enable.idempotence": True,
    "log_level": 2,
}
# librdkafka puts records together up to this size, and the broker refuses the batch as it would a record.
LARGEST_BATCH = 1_000_000
# librdkafka has five batches in flight. While a further one waits, its thread asks all the time whether that may go,
# which doubled the CPU time of a writer: so no further piece is sent while more than so many bytes have no answer.
MOST_ON_ITS_WAY = 3 * LARGEST_BATCH
_FENCED = {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}
_REFUSED_WITH_OTHERS = (
    "the broker refuses it, or another record of its batch. A compacted topic takes no record without a key: set "
    "`cleanup.policy=delete` for the time of the restore. One with message.timestamp.before.max.ms or after.max.ms "
    "takes none that is older or later: raise them"
)
_REFUSED = {
    KafkaError.MSG_SIZE_TOO_LARGE: "it is larger than the topic's max.message.bytes; raise it",
    KafkaError.INVALID_TIMESTAMP: "its timestamp is out of the topic's message.timestamp.before.max.ms or "
    "after.max.ms; raise them for the time of the restore",
    # Brokers and client name the reason for some records of a batch, and say these of the others.
    KafkaError.INVALID_RECORD: _REFUSED_WITH_OTHERS,
    KafkaError._INVALID_DIFFERENT_RECORD: _REFUSED_WITH_OTHERS,
    KafkaError.POLICY_VIOLATION: "a policy of the broker refuses it",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the credentials may not write; grant them Write on the topic",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "grant the credentials Write and Describe on the "
    "transactional id",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "grant the credentials IdempotentWrite on the cluster",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "grant the credentials Read on the group of the restore",
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "the brokers' transaction.max.timeout.ms is less than five minutes; raise "
    "it, or set transaction.timeout.ms in the Kafka connection, to 30000 or more",
}
# Producers whose last call never returned. To free them would wait for that call.
_abandoned: list[Any] = []


class OnItsWay:
    """The bytes of the records that were sent and have no answer yet. Answers come in the order of sending."""

    def __init__(self) -> None:
        # The rows and bytes of each piece, and their sums.
        self._pieces: deque[tuple[int, int]] = deque()
        self._rows = self._bytes = 0

    def add(self, rows: int, size: int) -> None:
        self._pieces.append((rows, size))
        self._rows, self._bytes = self._rows + rows, self._bytes + size

    def size(self, waiting: int) -> int:
        """Return the bytes of the pieces that have not all answers, if so many records have none."""
        while self._pieces and self._rows - self._pieces[0][0] >= waiting:
            rows, size = self._pieces.popleft()
            self._rows, self._bytes = self._rows - rows, self._bytes - size
        return self._bytes


class TransactionalWriter:
    """Writes one partition. Creating it fences every earlier writer of the partition, and waits until what that had
    not committed is aborted.

    :param transactional_id: the same for every attempt at this partition.
    :param largest_batch: the topic's max.message.bytes.
    :raises PermanentError: the brokers refuse the credentials or the transactional id.
    :raises ConfigError: the properties leave too little time for a transaction.
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
        # The records of the open transaction.
        self._rows = 0
        self._on_its_way = OnItsWay()
        config: dict[str, Any] = {
            **_TUNING,
            "transaction.timeout.ms": TRANSACTION_MS,
            "batch.size": max(1, min(LARGEST_BATCH, largest_batch)),
            **native_properties(properties),
            **_FIXED,
            "transactional.id": transactional_id,
        }
        _require_time(str(config["transaction.timeout.ms"]))
        try:
            self._sender = self._new(config)
        except KafkaException as error:
            raise translate(error.args[0], "start a producer", self._complaints.brokers) from error
        try:
            self._do(f"become the writer of {name}", lambda: self._sender.init(seconds), began=False)
        except BaseException:
            self.close()
            raise

    def _new(self, config: Mapping[str, Any]) -> Sender:
        if (functions := library()) and is_possible(config):
            return DrainSender(functions, config, self._complaints, self._name)
        return ObjectSender(config, self._complaints, self._name, self._complaints.brokers)

    def send(self, batch: pa.RecordBatch) -> None:
        """Send records in the open transaction, which begins with the first one.

        :param batch: `timestamp` in milliseconds, `key`, `value`, `headers`, in any variant of their types.
        :raises UncertainError, FencedError, PermanentError: the transaction will not be committed.
        """
        if not batch.num_rows:
            return
        if not self._rows:
            self._do("begin a transaction", self._sender.begin)
        batch = batch if batch.schema.equals(COLUMNS) else normalised(batch)
        try:
            for piece in _pieces(batch):
                # Behind a record that failed, some never get an answer.
                while self._is_busy() and not self._sender.answer().error:
                    self._sender.poll(PAUSE)
                self._sender.send(piece)
                self._rows += piece.num_rows
                self._on_its_way.add(piece.num_rows, piece.nbytes)
        except (KafkaException, SystemError) as error:
            self._raise(self._reason(_error_of(error)), f"write a record to {self._name}", error)

    def _is_busy(self) -> bool:
        return self._on_its_way.size(self._sender.waiting()) > MOST_ON_ITS_WAY

    def _reason(self, error: KafkaError) -> KafkaError:
        """Return the reason why the open transaction has failed.

        Behind a record that was refused the client takes no more and drops what it has, without the reason. It gives
        the reason at once to who would begin another transaction; the answer about the record may come later.
        """
        failed = self._called("begin a transaction", self._sender.begin)
        reason: KafkaError | None = failed.args[0] if isinstance(failed, KafkaException) else None
        if reason and reason.code() != KafkaError._STATE:
            return reason
        return self._sender.answer().error or error

    def commit(self, group: str, stamp: str) -> Range:
        """Commit the open transaction, and with it the offset behind its last record as the progress of the group.

        Returns the offsets from its first record to behind its last one; more than its records if another writer's are
        in between.

        :param stamp: the metadata of the progress.
        :raises UncertainError: it may be committed or not. :raises FencedError, PermanentError: it is not.
        """
        assert self._rows, "no transaction is open"
        waiting = self._do(f"write to {self._name}", self._flush)
        answer = self._sender.answer()
        if answer.error:
            self._raise(self._reason(answer.error), f"write a record to {self._name}")
        if waiting:
            raise UncertainError(f"the brokers did not take all records for {self._name} within {self._seconds:.0f} s")
        start, last = answer.first, answer.last
        if start is None or last is None or start < 0 or last < start + self._rows - 1:
            # A batch that was sent twice: the broker has it, and does not say where. Or a record failed.
            raise UncertainError(f"the brokers did not say where the records for {self._name} are")
        what = f"commit records of {self._name} with the progress in group {group}"
        self._do(what, lambda: self._sender.send_offset(group, last + 1, stamp, self._seconds))
        self._do(what, lambda: self._sender.commit(self._seconds))
        self._complaints.forget()
        self._rows = 0
        return Range(start, last + 1)

    def _flush(self) -> int:
        """Wait until all records have answers, or one has failed: others may then never get one.

        Returns how many have none.
        """
        end = time.monotonic() + self._seconds
        while waiting := self._sender.flush(FLUSH):
            if self._sender.answer().error or time.monotonic() > end:
                break
        return waiting

    def close(self) -> None:
        """Close the producer. An open transaction is aborted, by it or by whoever comes next."""
        sender = self.__dict__.pop("_sender", None)
        if sender is not None:
            sender.purge()
            if not _in_time(sender.close, CLOSE):
                _abandoned.append(sender)

    def _do(self, what: str, call: Callable[[], Any], began: bool = True) -> Any:
        result = self._called(what, call)
        if isinstance(result, KafkaException):
            error = result.args[0]
            self._raise(self._reason(error) if error.code() == KafkaError._FAIL else error, what, result, began)
        if isinstance(result, BaseException):
            raise UncertainError(f"{self._complaints.brokers}: could not {what}: {result}") from result
        return result

    def _called(self, what: str, call: Callable[[], Any]) -> Any:
        """Call the client, for a limited time: with a coordinator that is down, some calls ignore their timeouts.

        Returns its answer, or the error that it raised.
        """
        answer: list[Any] = []

        def run() -> None:
            try:
                answer.append(call())
            except SystemError as error:
                answer.append(KafkaException(_error_of(error)))
            except (KafkaException, RuntimeError) as error:
                answer.append(error)

        if not _in_time(run, self._seconds + MORE):
            _abandoned.append(self.__dict__.pop("_sender"))
            raise UncertainError(f"{self._complaints.brokers}: no answer to: {what}")
        return answer[0]

    def _raise(self, error: KafkaError, what: str, cause: Exception | None = None, began: bool = True) -> NoReturn:
        code, brokers = error.code(), self._complaints.brokers
        if code in _FENCED:
            raise FencedError(
                f"{brokers}: could not {what}: another attempt writes {self._name} now, or the transaction was open "
                "for longer than transaction.timeout.ms, and the brokers have ended it"
            ) from cause
        if code in _REFUSED:
            reason = f"{_REFUSED[code]} ({foreign(error.str())})"
            raise PermanentError(f"{brokers}: could not {what}: {reason}") from cause
        translated: ArchiverError = self._complaints.translate(error, what)
        if isinstance(translated, PermanentError):
            raise translated from cause
        kind = UncertainError if began else TransientError
        raise kind(str(translated)) from cause


def _error_of(error: Exception) -> KafkaError:
    """Return the client's error; `_FAIL` if it has lost a fatal error while librdkafka called an answer's callback."""
    cause = error.__cause__ if isinstance(error, SystemError) else error
    return cause.args[0] if isinstance(cause, KafkaException) else KafkaError(KafkaError._FAIL, str(error))


def _require_time(milliseconds: str) -> None:
    """Check the time that the brokers leave a transaction open; what is no number, librdkafka refuses."""
    if milliseconds.isdecimal() and int(milliseconds) < LEAST_TRANSACTION_MS:
        raise ConfigError(
            f"the Kafka connection has `transaction.timeout.ms: {milliseconds}`: the brokers would abort a restore's "
            f"transactions, which take ten seconds and more. Leave it out, or give {LEAST_TRANSACTION_MS} or more"
        )


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield records in pieces of about `LARGEST_BATCH` bytes."""
    rows = max(1, batch.num_rows * LARGEST_BATCH // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _in_time(call: Callable[..., Any], seconds: float) -> bool:
    """Call in a thread. Returns False if the call has not returned in time; it goes on, and nobody waits for it."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()

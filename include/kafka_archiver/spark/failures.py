"""What failed inside Spark itself, as an error of ours, and as the job's exit code.

Our own errors come out of its tasks as values (spark/sink.py); Spark's and Java's are text inside its exception.
"""

import re

from kafka_archiver.errors import ArchiverError, PermanentError, TransientError

PERMANENT_EXIT, TRANSIENT_EXIT, UNKNOWN_EXIT = 64, 75, 1
MARK = "kafka-archiver error: "
_CAUSE = re.compile(r"^Caused by: (?P<type>[\w.$]+): (?P<text>.*)$", re.MULTILINE)
_DATA_LOSS = re.compile(r"OffsetOutOfRange|failOnDataLoss|Some data may have been lost", re.IGNORECASE)
_DAMAGED = re.compile(r"CorruptRecordException|KafkaException: Received exception when fetching|Record is corrupt")
_FAR = re.compile(r"topic (\S+) partition (\d+) offset (\d+) has timestamp value (-?\d+) that overflows")
_NO_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError(?:: [\w ]+)?")
# What a JVM of Spark's exits with when its memory is full.
OUT_OF_MEMORY_EXIT = 52
# By a broker, or by the identity provider that has the tokens. librdkafka is asked before, so it is seldom seen.
_REFUSED = re.compile(r"(?:Sasl|Ssl)AuthenticationException: .*|The response code 4\d\d .* token endpoint response")


def understand(error: Exception) -> Exception:
    """The error of ours that an exception of Spark's means; the exception itself when it means none."""
    if isinstance(error, ArchiverError):
        return error
    text = str(error)
    if refused := _REFUSED.search(text):
        return PermanentError(f"Spark's Kafka client was refused: {refused[0]}; correct the Kafka connection")
    if far := _FAR.search(text):
        return PermanentError(
            f"{far[1]}[{far[2]}] offset {far[3]} has the time {far[4]} ms, which is more than Spark can count (the "
            "year 294247); set `source.reader: native`, which stores it as it is"
        )
    if _DAMAGED.search(text):
        return TransientError("what the brokers sent was damaged on the way (its checksum is wrong)")
    if _DATA_LOSS.search(text):
        return TransientError(
            "Kafka removed records while they were being read (retention overtook the run); the next attempt sees "
            "what is left, and `policies.lost_offsets` decides what becomes of the rest"
        )
    return out_of_memory(text) or error


def out_of_memory(text: str) -> PermanentError | None:
    """What to do when the text says that a JVM's memory was full; None when it does not."""
    found = _NO_MEMORY.search(text)
    return found and PermanentError(
        f"Spark's JVM ran out of memory ({found[0]}): records of many megabytes take several times their size there. "
        "Set `source.reader: native`, whose records never cross the JVM, or give it more by `spark.conf`: "
        "spark.executor.memory, and spark.driver.memory where the driver is the executor"
    )


def exit_code(error: Exception) -> int:
    """What the job exits with, so that Airflow knows whether to try again."""
    if isinstance(error, TransientError):
        return TRANSIENT_EXIT
    return PERMANENT_EXIT if isinstance(error, ArchiverError) else UNKNOWN_EXIT


def one_line(error: Exception) -> str:
    """The cause in one line, the innermost one where Spark nests them."""
    causes = _CAUSE.findall(str(error))
    text = ": ".join(causes[-1]) if causes else f"{type(error).__name__}: {error}"
    return MARK + " ".join(text.split())[:2000]

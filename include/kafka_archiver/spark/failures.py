"""Translates failures of Spark and Java to our errors, and errors to the job's exit code.

Our own errors leave tasks as values (spark/sink.py); Spark's and Java's are text in an exception. Does not import
Spark: Airflow's DAG processor and tasks use the exit codes.
"""

import re

from kafka_archiver.messages.errors import ArchiverError, PermanentError, TransientError, error_in_words

PERMANENT_EXIT, TRANSIENT_EXIT, UNKNOWN_EXIT = 64, 75, 1
MARK = "kafka-archiver error: "
# Precedes the id of Spark's application in the job's log.
APPLICATION = "Spark application "
_CAUSE = re.compile(r"^Caused by: (?P<type>[\w.$]+): (?P<text>.*)$", re.MULTILINE)
# The end of Python's traceback, behind the lines of the calls.
_PYTHON = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?P<error>\S.*)")
_DATA_LOSS = re.compile(r"OffsetOutOfRange|failOnDataLoss|Some data may have been lost", re.IGNORECASE)
_DAMAGED = re.compile(r"CorruptRecordException|KafkaException: Received exception when fetching|Record is corrupt")
_FAR = re.compile(r"topic (\S+) partition (\d+) offset (\d+) has timestamp value (-?\d+) that overflows")
# A task whose process has ended, or whose Python had no memory: Spark tells its number.
_ENDED = re.compile(
    r"Python worker (?:exited unexpectedly|crashed|failed)|ExecutorLostFailure|java\.io\.EOFException|Connection reset|"
    r"Broken pipe"
)
_NO_MEMORY_THERE = re.compile(r"(?:\w+\.)*(?:Arrow)?MemoryError\b")
_TASK = re.compile(r"\bTask (\d+) in stage")
_NO_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError(?:: [\w ]+)?")
# The exit code of a Spark JVM that is out of memory.
OUT_OF_MEMORY_EXIT = 52
# A refusal by a broker or the identity provider. Seldom seen here: librdkafka connects before Spark does.
_REFUSED = re.compile(r"(?:Sasl|Ssl)AuthenticationException: .*|The response code 4\d\d .* token endpoint response")


def understand(error: Exception) -> Exception:
    """Our error for an exception of Spark; the exception itself if it is unknown."""
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
        return TransientError("a record batch from the brokers arrived damaged (its checksum is wrong)")
    if _DATA_LOSS.search(text):
        return TransientError(
            "Kafka removed records while they were being read (retention overtook the run); the next attempt reads "
            "what is left, and `policies.lost_offsets` decides about the rest"
        )
    return out_of_memory(text) or error


def out_of_memory(text: str) -> PermanentError | None:
    """The error if the text shows that a JVM ran out of memory; else None."""
    match = _NO_MEMORY.search(text)
    return match and PermanentError(
        f"Spark's JVM ran out of memory ({match[0]}): records of many megabytes take several times their size there. "
        "Set `source.reader: native`, whose records never cross the JVM, and which names the offsets of a record batch "
        "that nobody can decompress; or give the JVM more memory by `spark.conf`: "
        "spark.executor.memory, and spark.driver.memory where the driver is the executor"
    )


def process_ended(text: str) -> bool:
    """Return True if by Spark's exception the process of a task has ended, or its Python had no memory."""
    # An error that Python has raised is of its task's code, which may tell of other connections.
    raised = raised_by_python(text)
    return bool(_NO_MEMORY_THERE.match(raised) if raised else _ENDED.search(text))


def failed_task(text: str) -> int | None:
    """Return the number of the failed task; None if Spark's exception does not tell."""
    task_match = _TASK.search(text)
    return int(task_match[1]) if task_match else None


def exit_code(error: Exception) -> int:
    """The job's exit code, by which Airflow decides about a retry."""
    if isinstance(error, TransientError):
        return TRANSIENT_EXIT
    return PERMANENT_EXIT if isinstance(error, ArchiverError) else UNKNOWN_EXIT


def raised_by_python(text: str) -> str:
    """The class and the first line of the last error in tracebacks of Python; empty without one."""
    names: list[str] = _PYTHON.findall(text)
    return names[-1] if names else ""


def one_line(error: Exception) -> str:
    """Return the error in one line; of nested causes, the innermost one."""
    causes = _CAUSE.findall(str(error))
    text = ": ".join(causes[-1]) if causes else error_in_words(error)
    raised = raised_by_python(str(error))
    # Java's line of a Python error has none of its text.
    if raised and (not causes or causes[-1][1].startswith("Traceback")):
        text = raised
    return MARK + " ".join(text.split())[:2000]

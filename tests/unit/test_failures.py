"""Failures inside Spark, as one line and an exit code for Airflow."""

import pytest

from kafka_archiver.messages.errors import ConfigError, IntegrityError, PermanentError, TransientError
from kafka_archiver.spark.failures import (
    PERMANENT_EXIT,
    TRANSIENT_EXIT,
    UNKNOWN_EXIT,
    exit_code,
    failed_task,
    one_line,
    process_ended,
    understand,
)

IN_A_TASK = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/x/worker.py", line 1, in main
  File "/x/s3.py", line 9, in put
{error}


\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)
Caused by: java.io.IOException: last
"""


@pytest.mark.parametrize(
    ("error", "code"),
    [(TransientError("slow"), TRANSIENT_EXIT), (IntegrityError("x"), PERMANENT_EXIT), (ValueError("x"), UNKNOWN_EXIT)],
)
def test_an_error_has_the_code_that_says_what_to_do(error: Exception, code: int) -> None:
    assert exit_code(error) == code
    assert understand(error) is error


def test_records_removed_while_they_are_read_are_seen_by_the_next_attempt() -> None:
    assert isinstance(understand(RuntimeError("x OffsetOutOfRangeException: {orders-0=1}")), TransientError)


def test_a_jvm_without_memory_is_a_permanent_error_that_names_the_ways_out() -> None:
    text = "Job aborted: Task 0 in stage 0.0 failed: java.lang.OutOfMemoryError: Java heap space\n\tat org.apache.x.Y"
    error = understand(RuntimeError(text))
    assert type(error) is PermanentError
    assert "memory (java.lang.OutOfMemoryError: Java heap space): " in str(error)
    assert "`source.reader: native`" in str(error)


def test_a_time_that_spark_cannot_count_is_a_permanent_error_that_names_the_record_and_the_way_out() -> None:
    text = (
        "KafkaIllegalStateException: Record at topic a.b partition 3 offset 17 has timestamp value 9223372036854776 "
        "that overflows when converting to Spark's microsecond-precision TimestampType.\nKafka record timestamps"
    )
    error = understand(RuntimeError(text))
    assert type(error) is PermanentError
    assert str(error).startswith("a.b[3] offset 17 has the time 9223372036854776 ms")
    assert "`source.reader: native`" in str(error)


def test_any_other_error_stays_and_is_shown_by_its_innermost_cause_in_one_line() -> None:
    error = RuntimeError(IN_A_TASK.format(error="ValueError: no"))
    assert understand(error) is error
    assert exit_code(error) == 1
    assert one_line(error) == "kafka-archiver error: java.io.IOException: last"
    traceback = 'Traceback (most recent call last):\n  File "m.py", line 1\n    f()\nMemoryError\n'
    python = f"Lost task: org.apache.x.PythonException: {traceback}\n\tat org.apache.y\nCaused by: x.Y: {traceback}"
    assert one_line(RuntimeError(python)) == "kafka-archiver error: MemoryError"
    assert one_line(ConfigError("a\n b")) == "kafka-archiver error: a b"


PYTHON = 'Traceback (most recent call last):\n  File "m.py", line 1\n    f()\n'


@pytest.mark.parametrize(
    ("text", "ended", "task"),
    [
        ("Task 3 in stage 0.0 failed 1 times: SparkException: Python worker exited unexpectedly (crashed)", True, 3),
        ("Task 12 in stage 1.0 failed 4 times: ExecutorLostFailure (executor 2 exited): code 137", True, 12),
        (f"Task 0 in stage 0.0 failed 1 times: PythonException: {PYTHON}MemoryError\n", True, 0),
        (f"An exception was thrown from the Python worker:\n{PYTHON}MemoryError\n", True, None),
        (
            f"Task 0 in stage 0.0 failed 1 times: PythonException: {PYTHON}pyarrow.lib.ArrowMemoryError: malloc\n",
            True,
            0,
        ),
        (f"Task 0 in stage 0.0 failed 1 times: PythonException: {PYTHON}OSError: Broken pipe\n", False, 0),
        ("Task 0 in stage 0.0 failed 1 times: java.lang.IllegalStateException: x", False, 0),
        ("Python worker exited unexpectedly", True, None),
    ],
)
def test_a_task_whose_process_ended_is_told_from_one_that_failed(text: str, ended: bool, task: int | None) -> None:
    assert (process_ended(text), failed_task(text)) == (ended, task)

"""The cause of a job's failure, from its output."""

from pathlib import Path

import pytest

from kafka_archiver.messages.errors import ArchiverError, PermanentError, TransientError
from kafka_archiver.orchestration.submit.output import Verdict

pytestmark = pytest.mark.dags


def error(code: int | None, *lines: str) -> ArchiverError:
    verdict = Verdict(Path("/nowhere/verdict.json"))
    assert list(verdict.watch(lines)) == list(lines)
    return verdict.error(code)


def test_an_unknown_code_is_tried_again_and_says_the_last_exception() -> None:
    failure = error(
        1,
        "java.io.IOException: first",
        'Exception in thread "main" org.apache.spark.SparkException: Master removed our application',
        "\tat org.apache.spark.Whatever(x.scala:1)",
        "26/11/21 INFO ShutdownHookManager: Shutdown hook called",
    )
    assert type(failure) is TransientError
    assert str(failure) == (
        "the Spark job ended with exit code 1: org.apache.spark.SparkException: Master removed our application"
    )


def test_a_jvm_without_memory_is_not_tried_again() -> None:
    lines = ("26/11/21 ERROR Executor: Exception in task 0.0", "java.lang.OutOfMemoryError: Java heap space")
    failure = error(52, *lines)
    assert type(failure) is PermanentError
    assert "spark.driver.memory" in str(failure)
    # An executor that died so was replaced, and something else ended the job.
    assert type(error(1, *lines, "java.io.IOException: no route")) is TransientError


@pytest.mark.parametrize("code", [-9, 137])
def test_a_killed_job_is_said_to_be_killed_once(code: int) -> None:
    again = 'Exception in thread "main" org.apache.spark.SparkUserAppException: User application exited with 137'
    failure = error(code, again)
    assert type(failure) is TransientError
    assert str(failure) == "spark-submit was killed by signal 9 (out of memory, or by hand)"
    assert str(error(code, "java.io.IOException: last", again)) == f"{failure}: java.io.IOException: last"


@pytest.mark.parametrize(
    "line",
    [
        "\t diagnostics: User application exited with status 64",
        "26/11/21 INFO LoggingPodStatusWatcherImpl: \t exit code: 64",
    ],
)
def test_in_cluster_mode_the_code_is_in_the_log(line: str) -> None:
    assert type(error(1, line)) is PermanentError


def test_silence_has_a_message_too() -> None:
    assert str(error(1)) == (
        "the Spark job ended with exit code 1: the job logged no cause; see the end of the task's log"
    )

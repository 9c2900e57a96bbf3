"""Spark: what this machine needs to submit a job."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping

from kafka_archiver.context.local_spark import java_program
from kafka_archiver.kafka.drain import library as drain
from kafka_archiver.records.rows import library as rows
from kafka_archiver.state.doctor.check import Finding, ok, problem, warning


def check_submit(binary: str, environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Check for spark-submit and Java.

    :param binary: spark-submit, as the Spark connection names it.
    """
    path = shutil.which(binary, path=environment.get("PATH"))
    if path is None:
        yield problem(
            "spark-submit",
            f"{binary} is not on the PATH of this machine",
            "the task `archive` fails; it runs on Airflow's workers, so try this command there",
            "pip install pyspark==4.2.0",
            "another `spark-binary` in the extra of the Spark connection",
        )
    else:
        yield ok("spark-submit", path)
    yield _java(environment)
    yield _compiled()


def _compiled() -> Finding:
    """Return how jobs of this installation read and decode records, if their executors are of this platform."""
    reasons = dict.fromkeys(filter(None, (drain.why_not(), rows.why_not())))
    if not reasons:
        return ok("reader", "jobs read and decode records in C")
    return warning(
        "reader",
        f"jobs read or decode records in Python: {'; '.join(reasons)}",
        "what they write is the same; they take more CPU",
        "with a C compiler on a machine like the executors: python -m kafka_archiver.records.native.compile",
    )


def _java(environment: Mapping[str, str]) -> Finding:
    java = java_program(environment)
    remedies = ("install Java 17 or 21", "set JAVA_HOME to where it is")
    if java is None:
        return problem(
            "java", "there is no `java` on the PATH, and JAVA_HOME is not set", "Spark does not start", *remedies
        )
    try:
        process = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return problem("java", f"{java} does not run: {error}", "Spark does not start", *remedies)
    lines = (process.stderr or process.stdout).splitlines() or [""]
    if process.returncode:
        return problem("java", f"{java} ended with {process.returncode}: {lines[0]}", "Spark does not start", *remedies)
    return ok("java", f"{lines[0]} ({java})")

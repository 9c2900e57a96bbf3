"""Spark and Java on this machine, for questions about SQL."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_archiver.messages.errors import ConfigError, TransientError

if TYPE_CHECKING:
    # Not at runtime: it loads Arrow, and Airflow parses modules that import this one all day.
    from kafka_archiver.records.pipeline.transform.questions import SqlAnswer, SqlQuestion

SECONDS = 300
_SHOWN = re.compile(r'version "(\d+)')
_RELEASE = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)


def ask_spark(question: "SqlQuestion") -> "SqlAnswer":
    """Start Spark on this machine, and ask.

    :raises TransientError: it does not answer. ConfigError: there is none.
    """
    from kafka_archiver.records.pipeline.transform.questions import SqlAnswer

    package = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    # A master or arguments of the worker's environment are not for this program.
    env = {k: v for k, v in os.environ.items() if k != "PYSPARK_SUBMIT_ARGS"} | {"PYTHONPATH": paths}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "kafka_archiver.spark.analysis"],
            input=question.model_dump_json(), capture_output=True, text=True, timeout=SECONDS, env=env, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TransientError(f"Spark did not say within {SECONDS} seconds whether it takes `transform`") from None
    last = done.stdout.strip().rpartition("\n")[2]
    try:
        return SqlAnswer.model_validate(json.loads(last))
    except ValueError:
        text = " ".join(done.stderr.split())[-500:]
        raise ConfigError(
            "transform: planning asks Spark on this machine about it, and Spark cannot start: it needs "
            f"pyspark and Java (JAVA_HOME) where Airflow plans. It said: {text}"
        ) from None


def java_program(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the path of `java`: of JAVA_HOME, else on the PATH."""
    home = environment.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environment.get("PATH"))


def java_version(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return its version, as `17`; None: there is no Java. It starts only if it has no file `release`."""
    program = java_program(environment)
    if program is None:
        return None
    try:
        release = Path(program).resolve().parents[1] / "release"
        if match := _RELEASE.search(release.read_text("utf-8", errors="replace")):
            return match[1]
    except OSError:
        pass
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _SHOWN.search(done.stderr + done.stdout)
    return match[1] if match else None

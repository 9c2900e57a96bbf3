"""The commands as real processes: few, for each takes seconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.stack.paths import BIN

pytestmark = pytest.mark.dags

PARSER = """
import json, sys
from airflow.cli import cli_parser
cli_parser.get_parser()
groups = cli_parser.ALL_COMMANDS_DICT
print(json.dumps({
    "modules": sorted(m for m in sys.modules if m.startswith("kafka_archiver")),
    "heavy": sorted({"boto3", "confluent_kafka", "pyarrow", "pyspark"} & set(sys.modules)),
    "dags": [c.name for c in groups["dags"].subcommands],
    "archive": [c.name for c in groups["archive"].subcommands],
}))
"""


def start(*command: str | Path, home: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        env={**os.environ, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_airflow_command_loads_next_to_nothing_of_ours(tmp_path: Path) -> None:
    done = start(sys.executable, "-c", PARSER, home=tmp_path)
    assert done.returncode == 0, done.stderr
    modules = json.loads(done.stdout)
    orchestration = "kafka_archiver.orchestration"
    light = ("messages", "values", "orchestration.backfill", "orchestration.cli", "orchestration.terminal")
    rooms = tuple(f"kafka_archiver.{room}" for room in light)
    other_modules = [
        name for name in modules["modules"] if not f"{name}.".startswith(tuple(f"{room}." for room in rooms))
    ]
    assert other_modules == ["kafka_archiver", orchestration, f"{orchestration}.provider"]
    assert modules["heavy"] == []
    assert {"list", "trigger", "unpause"} < set(modules["dags"])
    assert modules["dags"].count("backfill") == 1
    assert " ".join(modules["archive"]) == (
        "list validate import adopt status plan runs show print get decrypt audit doctor requirements acknowledge "
        "clean fill rebuild repair replay-dead-letters restore rotate-keys"
    )


def test_only_the_result_goes_to_stdout_also_when_airflow_logs_at_debug(archives: Path, tmp_path: Path) -> None:
    """Without a metadata database, too: a review of the YAML needs none."""
    (archives / "orders.yaml").write_text("archive: orders\nsource: {topics: [orders]}\nstore: {url: s3://b/p}\n")
    (archives / "wrong.yaml").write_text("archive: [")
    folder = {"ARCHIVER_CONFIG_DIR": str(archives), "AIRFLOW__LOGGING__LOGGING_LEVEL": "DEBUG"}
    done = start(BIN / "airflow", "archive", "validate", "--output", "json", home=tmp_path, **folder)
    assert [entry["archive"] for entry in json.loads(done.stdout)] == ["orders", None]
    assert done.returncode == 1
    assert "\nFiles with problems: 1 of 2.\n" in done.stderr
    # Before the command and after it.
    for line in ("Setting up DB connection pool", "Disposing DB connection pool"):
        assert f"[debug    ] {line}" in done.stderr
    assert "Traceback" not in done.stderr

"""Where the job has its endpoints from: its environment, or the file that it names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.jobs.archive import ArchiveJob
from kafka_archiver.jobs.endpoints import ENDPOINTS, Endpoints
from kafka_archiver.orchestration.submit.handover import BY_FILE, FILE
from kafka_archiver.spark.failures import MARK, PERMANENT_EXIT
from scripts.stack.paths import ROOT

pytestmark = pytest.mark.unit
SECRET = "hunter2-hunter2"
TEXT = Endpoints({"bootstrap.servers": "127.0.0.1:9", "sasl.password": SECRET}, {}).to_json()


def refusal(folder: Path, value: str) -> str:
    """The job's last line. A store in memory has no run: it is said where the endpoints could be read."""
    archive = Archive.model_validate(
        {"archive": "orders", "source": {"topics": ["t"]}, "store": {"url": "memory://x/y"}}
    )
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "spark_jobs" / "archive.py",
            ArchiveJob.of(archive, ["20261121T040000Z"]).to_argument(),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "include"), ENDPOINTS: value},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == PERMANENT_EXIT, done.stderr
    assert SECRET not in done.stdout + done.stderr
    return done.stdout.splitlines()[-1].removeprefix(MARK)


def test_the_job_reads_them_from_its_environment_or_from_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(TEXT)
    [of_yarn] = BY_FILE.values()
    for value in (TEXT, of_yarn):
        assert "has no plan" in refusal(tmp_path, value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "is not set: expected JSON with `kafka`"),
        ("@none.json", "names a file that cannot be read: [Errno 2] No such file or directory: 'none.json'"),
        (f"@{FILE}", "is not JSON with `kafka` and `store`"),
        (f'{{"kafka": {{"sasl.password": "{SECRET}"}}}}', "is not JSON with `kafka` and `store`"),
    ],
)
def test_what_it_cannot_read_is_said_without_it(tmp_path: Path, value: str, message: str) -> None:
    (tmp_path / FILE).write_text(f'{{"kafka": "{SECRET}"')
    assert message in refusal(tmp_path, value)

"""A second job is one file with a document and a function, and one line in the registry: this file and `LINE`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.driver.main import main
from kafka_archiver.jobs.base import JobDocument
from kafka_archiver.jobs.endpoints import ENDPOINTS, VERDICT, Endpoints
from kafka_archiver.jobs.registry import JOBS, Job, document_type, read_document
from kafka_archiver.messages.errors import ConfigError, Failure, PermanentError
from kafka_archiver.spark.failures import PERMANENT_EXIT

pytestmark = pytest.mark.unit
DONE: list[tuple[str, str]] = []


class CountJob(JobDocument):
    job: Literal["count"] = "count"
    archive: str
    runs: tuple[str, ...]

    @classmethod
    def of(cls, archive: Archive, runs: Sequence[str]) -> Self:
        return cls(archive=archive.archive, runs=tuple(runs))


def run(document: CountJob, endpoints: Endpoints) -> None:
    if not document.runs:
        raise PermanentError("there is nothing to count")
    DONE.append((document.archive, endpoints.kafka["bootstrap.servers"]))


LINE = {"count": Job(f"{__name__}:CountJob", f"{__name__}:run")}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kafka_archiver.driver.main.watch", lambda: None)
    monkeypatch.setenv(ENDPOINTS, Endpoints({"bootstrap.servers": "k:1"}, {}).to_json())
    monkeypatch.setenv(VERDICT, str(tmp_path / "verdict.json"))
    for name, line in LINE.items():
        monkeypatch.setitem(JOBS, name, line)
    DONE.clear()


def document(*runs: str) -> JobDocument:
    archive = Archive.model_validate({"archive": "o", "source": {"topics": ["t"]}, "store": {"url": "s3://b/l"}})
    return document_type("count").of(archive, runs)


def test_the_main_program_does_the_job_that_the_document_names() -> None:
    assert main([document("r").to_argument()]) == 0
    assert DONE == [("o", "k:1")]


def test_its_failure_reaches_the_task_as_that_of_any_job(tmp_path: Path) -> None:
    assert main([document().to_argument()]) == PERMANENT_EXIT
    error = Failure.from_json((tmp_path / "verdict.json").read_text()).error()
    assert str(error) == "there is nothing to count"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "0 arguments"),
        (["{}", "{}"], "2 arguments"),
        (["no"], "no such document"),
        (["[]"], "no such document"),
        ([json.dumps({"job": "compact"})], "job 'compact'"),
    ],
)
def test_a_document_of_no_job_is_refused_with_the_jobs_that_there_are(arguments: list[str], message: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"the document of a job \(archive \| restore \| count\) .*; found {message}"
    ):
        read_document(arguments)


def test_a_document_with_a_fault_is_refused_by_its_fields() -> None:
    with pytest.raises(ConfigError, match=r"of a job `count` .*; found archive: Field required"):
        read_document(['{"job": "count", "runs": []}'])

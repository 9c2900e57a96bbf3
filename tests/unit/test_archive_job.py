"""The document of the job: what the task writes is what the job's main program reads."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.jobs.archive import ArchiveJob
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.messages.errors import (
    ArchiverError,
    BadRecordError,
    ConfigError,
    Failure,
    IntegrityError,
    PermanentError,
    PolicyError,
    TransientError,
)

pytestmark = pytest.mark.unit
TEXTS = st.text(st.characters(codec="utf-8"), max_size=9) | st.text("{}\"'$\\", max_size=9)
JOBS = st.builds(
    ArchiveJob,
    archive=TEXTS,
    store=TEXTS,
    runs=st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
    reader=st.sampled_from(["auto", "spark", "native"]),
    memory_bytes=st.integers(1, 1 << 40),
    lost_offsets=st.sampled_from(["fail", "record_loss"]),
    bad_record=st.sampled_from(["fail", "dead_letter", "skip"]),
)


@given(JOBS)
def test_what_is_written_is_read_and_yarn_finds_nothing_to_replace(job: ArchiveJob) -> None:
    argument = job.to_argument()
    assert ArchiveJob.from_arguments([argument]) == job
    assert "\n" not in argument
    assert not re.search(r"\{\{|\}\}", argument)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected one argument, the document of a job `archive`.*; found 0"),
        (["--store", "s3://x"], "; found 2"),
        (["{}"], "; found archive: Field required; store: Field required"),
        (['{"job": "restore"}'], "; found job: Input should be 'archive'"),
        (["no"], "; found document: Invalid JSON"),
    ],
)
def test_anything_else_is_refused_by_what_was_found(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ArchiveJob.from_arguments(arguments)


@given(st.dictionaries(TEXTS, TEXTS), st.dictionaries(TEXTS, TEXTS))
def test_endpoints_travel_as_they_are_and_show_nothing(kafka: dict[str, str], store: dict[str, str]) -> None:
    endpoints = Endpoints(kafka, store)
    assert Endpoints.from_json(endpoints.to_json()) == endpoints
    assert repr(endpoints) == "Endpoints()"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PolicyError("a", advice="b"), PolicyError),
        (IntegrityError("a\nb"), IntegrityError),
        (BadRecordError("t", 0, {3: "no"}), BadRecordError),
        (TransientError("\u00e9"), TransientError),
        (ArchiverError("a"), PermanentError),
    ],
)
def test_a_failure_is_the_error_again_as_a_class_for_everybodys_use(
    error: ArchiverError, kind: type[ArchiverError]
) -> None:
    again = Failure.from_json(Failure.of(error).to_json()).error()
    assert type(again) is kind
    assert str(again) == str(error)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "SystemExit", "message": "x"}', '{"kind": "PolicyError"}'])
def test_half_a_failure_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Failure.from_json(text)

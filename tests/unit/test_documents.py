"""Documents: the same value is the same bytes, and what is not a document is told by a sentence."""

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import DocumentError
from kafka_archiver.model.manifest import Commit, Manifest
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.values.documents import Document, isoformat
from tests.support.values import FIVE, plans, runs

pytestmark = pytest.mark.unit

NAME = "s3://archive/lake/_ledger/orders/runs/20261121T050000Z/commit.json"
COMMIT = Commit(
    archive="orders",
    run="20261121T050000Z",
    plan_digest="p",
    manifest_digest="m",
    committed_at=FIVE + timedelta(hours=1),
)
BYTES = b"""{
  "document": "kafka-archiver/commit",
  "version": 1,
  "archive": "orders",
  "run": "20261121T050000Z",
  "revision": 0,
  "outcome": "committed",
  "by": null,
  "plan_digest": "p",
  "manifest_digest": "m",
  "committed_at": "2026-11-21T06:00:00Z"
}
"""


def refused(data: bytes, kind: type[Document] = Commit) -> str:
    with pytest.raises(DocumentError) as caught:
        kind.from_json(data, NAME)
    assert str(caught.value).startswith(f"{NAME} is not a readable {kind.__name__.lower()} document: ")
    return str(caught.value)


def test_a_document_s_bytes_are_as_documented() -> None:
    assert COMMIT.to_json() == BYTES
    assert Commit.from_json(BYTES, NAME) == COMMIT


@given(runs())
def test_documents_come_back_from_their_bytes(run: tuple[Plan, Manifest]) -> None:
    for document in run:
        again = type(document).from_json(document.to_json(), NAME)
        assert again == document
        assert again.to_json() == document.to_json()
        assert again.digest == document.digest


@given(runs())
def test_documents_have_the_bytes_that_pythons_own_encoder_makes(run: tuple[Plan, Manifest]) -> None:
    for document in run:
        assert document.to_json() == json.dumps(document.model_dump(), indent=2, ensure_ascii=False).encode() + b"\n"


@pytest.mark.parametrize("text", ['\x00\x1f\x7f"\\/\b\f\n\r\t', "ä € 😀 \u2028\u2029\ufeff", ""])
def test_every_character_is_written_as_by_pythons_own_encoder(text: str) -> None:
    document = COMMIT.model_copy(update={"archive": text})
    assert document.to_json() == json.dumps(document.model_dump(), indent=2, ensure_ascii=False).encode() + b"\n"


@given(plans(), plans())
def test_digests_are_equal_exactly_when_plans_are(plan: Plan, other: Plan) -> None:
    assert (plan.digest == other.digest) == (plan == other)


@given(plans(), st.permutations(["lost_offsets", "bad_record", "null_value"]))
def test_the_order_in_which_a_table_was_made_does_not_show(plan: Plan, order: list[str]) -> None:
    policies = dict.fromkeys(("bad_record", "lost_offsets", "null_value"), "fail")
    again = Plan.model_validate({**dict(plan), "policies": {name: policies[name] for name in order}})
    assert again.digest == Plan.model_validate({**dict(plan), "policies": policies}).digest


@given(st.integers(-14 * 60, 14 * 60))
def test_the_zone_in_which_a_time_was_given_does_not_show(minutes: int) -> None:
    moved = COMMIT.committed_at.astimezone(timezone(timedelta(minutes=minutes)))
    assert Commit(**{**dict(COMMIT), "committed_at": moved}).to_json() == BYTES


def test_times_have_as_many_decimals_as_they_need() -> None:
    assert isoformat(FIVE) == "2026-11-21T05:00:00Z"
    assert isoformat(FIVE + timedelta(milliseconds=20)) == "2026-11-21T05:00:00.020000Z"
    assert isoformat(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00Z"


class TestDamage:
    @pytest.mark.parametrize("length", [0, 1, 2, 50, len(BYTES) - 2])
    def test_a_truncated_document_is_refused(self, length: int) -> None:
        assert "Invalid JSON" in refused(BYTES[:length])

    @pytest.mark.parametrize(
        "data", [b"\xff" + BYTES, b"null", b"[]", b'"plan"', b"<html>", b"\0" * 100, BYTES + BYTES, b'{"a":' * 10_000]
    )
    def test_what_is_no_json_object_is_refused(self, data: bytes) -> None:
        refused(data)

    @pytest.mark.parametrize(
        ("content", "put", "expected"),
        [
            (b'"version": 1', b'"version": 2', "version: Input should be 1"),
            (b'"version": 1', b'"version": "1"', "version: Input should be 1"),
            (b"/commit", b"/plan", "document: Input should be 'kafka-archiver/commit'"),
            (b'"revision": 0', b'"revision": 0, "extra": 1', "extra: Extra inputs are not permitted"),
            (b'  "archive": "orders",\n', b"", "archive: Field required"),
            (b'"revision": 0', b'"revision": "0"', "revision: Input should be a valid integer"),
            (b'"revision": 0', b'"revision": 0.0', "revision: Input should be a valid integer"),
            (b"06:00:00Z", b"06:00:00", "committed_at: Value error, a time needs a zone"),
            (b"06:00:00Z", b"26:00:00Z", "committed_at: Input should be a valid datetime"),
            (b"2026-11-21T06:00:00Z", b"9999-12-31T23:59:59-01:00", "committed_at: Value error, no such time in UTC"),
        ],
    )
    def test_each_wrong_field_is_named_with_what_was_expected(self, content: bytes, put: bytes, expected: str) -> None:
        assert content in BYTES
        message = refused(BYTES.replace(content, put))
        assert expected in message
        assert message.endswith("restore it from a backup of the store")

    def test_a_plan_with_a_fault_inside_says_where(self) -> None:
        data = COMMIT.to_json().replace(b"/commit", b"/plan")
        assert "interval: Field required" in refused(data, Plan)

    @given(st.integers(0, 8 * len(BYTES) - 1))
    def test_a_flipped_bit_is_refused_or_shows_in_the_digest(self, bit: int) -> None:
        damaged = bytearray(BYTES)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            commit = Commit.from_json(bytes(damaged), NAME)
        except DocumentError:
            return
        # RFC 3339 allows the letters of a time in lower case: the same time.
        harmless = bytes(damaged).lower() == BYTES.lower() and commit == COMMIT
        assert harmless or commit.digest != COMMIT.digest


def test_a_document_that_has_a_digest_of_its_content_is_read_if_it_is_the_one_and_only_then() -> None:
    document = Progress(archive="orders", settled=3)
    content, data = document.to_json(), document.to_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert data == content.removesuffix(b"\n}\n") + f',\n  "content_digest": "{digest}"\n}}\n'.encode()
    for stored in content, data:
        again = Progress.from_json(stored, NAME)
        assert again == document
        assert again.digest == hashlib.sha256(stored).hexdigest()
    assert document.digest == hashlib.sha256(data).hexdigest()
    changed = data.replace(b'"settled": 3', b'"settled": 4')
    for stored in changed, json.dumps(json.loads(changed)).encode():
        assert "its content was changed" in refused(stored, Progress)
    assert "content_digest: Extra inputs" in refused(json.dumps(json.loads(data), sort_keys=True).encode(), Progress)

"""The doctor: each strange state is named, with what it means and what to do; sound ones are not."""

from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.messages.kafka_tools import KafkaTools
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.object_keys import probe_prefix
from kafka_archiver.state.doctor import spark
from kafka_archiver.state.doctor.brokers import check_groups, check_retention, check_times, longest_interval
from kafka_archiver.state.doctor.examine import check_neighbours, examine
from kafka_archiver.state.doctor.spark import check_submit
from kafka_archiver.state.doctor.store import check_clock, check_store
from kafka_archiver.state.status.facts import Facts
from kafka_archiver.store import PendingUpload
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.store.s3 import S3Store
from kafka_archiver.values.ranges import TopicPartition
from tests.support.faulty_s3 import Checksums, Fault, FaultyS3, refuse
from tests.support.kafka_twin import KafkaTwin
from tests.support.values import FIVE
from tests.unit.conftest import OpenFaulty

pytestmark = pytest.mark.unit

HOUR_MS = 3_600_000
TOOLS = KafkaTools("b:9092")


def states(checks: list[Finding]) -> dict[str, str]:
    """The worst of each name."""
    order = ("ok", "warning", "problem")
    return {c.kind: max((o.severity for o in checks if o.kind == c.kind), key=order.index) for c in checks}


@pytest.mark.parametrize(
    ("settings", "schedule", "expected"),
    [
        ({"retention.ms": "-1"}, "0 * * * *", ["ok"]),
        ({"retention.ms": str(7 * 24 * HOUR_MS)}, "0 * * * *", ["ok"]),
        ({"retention.ms": str(7 * 24 * HOUR_MS)}, "@daily", ["ok"]),
        ({"retention.ms": str(6 * HOUR_MS)}, "0 * * * *", ["ok"]),
        ({"retention.ms": str(6 * HOUR_MS - 1)}, "0 * * * *", ["warning"]),
        ({"retention.ms": str(HOUR_MS)}, "0 * * * *", ["problem"]),
        ({"retention.ms": str(HOUR_MS)}, None, ["ok"]),
        # The night counts, not the hours of the day.
        ({"retention.ms": str(12 * HOUR_MS)}, "0 8-18 * * *", ["problem"]),
        ({"retention.ms": "9223372036854775807"}, "0 * * * *", ["ok"]),
        ({"retention.ms": "-1", "retention.bytes": "1000"}, "0 * * * *", ["ok", "warning"]),
        ({"cleanup.policy": "compact", "retention.ms": "1"}, "0 * * * *", ["ok", "warning"]),
        ({"cleanup.policy": "compact,delete", "retention.ms": "1"}, "0 * * * *", ["problem", "warning"]),
        ({}, "0 * * * *", ["ok"]),
    ],
)
def test_retention_against_the_schedule(settings: dict[str, str], schedule: str | None, expected: list[str]) -> None:
    findings = list(check_retention("orders", settings, schedule, TOOLS))
    assert [check.severity for check in findings] == expected
    assert all(check.means and check.steps for check in findings if check.severity != "ok")


def test_the_longest_interval_of_a_schedule() -> None:
    assert longest_interval("*/5 * * * *") == timedelta(minutes=5)
    assert longest_interval("0 8-18 * * 1-5") == timedelta(hours=62)


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        ({"message.timestamp.type": "LogAppendTime", "message.timestamp.after.max.ms": "9223372036854775807"}, "ok"),
        ({"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(HOUR_MS)}, "ok"),
        ({"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": "9223372036854775807"}, "warning"),
        ({}, "warning"),
    ],
)
def test_times_far_ahead(settings: dict[str, str], state: str) -> None:
    assert check_times("orders", settings, TOOLS).severity == state


def test_a_sound_store() -> None:
    store = MemoryStore("sound-for-the-doctor")
    assert states(list(check_store(store, "orders"))) == {
        "store": "ok",
        "create-only": "ok",
        "replace-only": "ok",
        "put, get, head, list, delete": "ok",
        "clocks": "ok",
        "multipart": "ok",
    }
    assert list(store.list("")) == []


@pytest.mark.parametrize(
    ("checksums", "foreign", "kind"),
    [
        ("known", False, "the store checks and keeps the CRC-32 of every part and object"),
        ("known", True, "the store checks and keeps the CRC-32 of every part and object"),
        ("ignored", False, "the store checks the MD5 of every part; objects are compared by their ETags"),
        ("refused", False, "the store checks the MD5 of every part; objects are compared by their ETags"),
        ("of parts", False, "the store checks the MD5 of every part; objects are compared by their ETags"),
        ("ignored", True, "every part; its ETags are no MD5s, so objects of killed jobs are compared by reading"),
    ],
)
def test_the_kind_of_checksums_that_a_store_has(
    server: FaultyS3, connect: OpenFaulty, checksums: Checksums, foreign: bool, kind: str
) -> None:
    server.checksums, server.encrypted = checksums, foreign
    server.store = MemoryStore(f"for the doctor, {checksums}", foreign_etags=foreign)
    # A client of its own, which has not learnt about another store.
    findings = list(check_store(connect(aws_access_key_id=f"KIND{checksums.upper().replace(' ', '')}"), "orders"))
    assert set(states(findings).values()) == {"ok"}
    assert findings[-1].kind == "multipart"
    assert findings[-1].observed.endswith(kind)


@pytest.mark.parametrize("checksums", ["known", "ignored"])
def test_a_store_that_makes_something_else_of_parts(server: FaultyS3, store: S3Store, checksums: Checksums) -> None:
    server.checksums = checksums

    class Confused(MemoryStore):
        def complete_upload(self, upload: PendingUpload) -> str:
            etag = super().complete_upload(upload)
            self.put(upload.key, bytes(len(self.get(upload.key) or b"")))
            return etag

    server.store = Confused("confused, for the doctor")
    [wrong] = [check for check in check_store(store, "orders") if check.severity == "problem"]
    assert wrong.kind == "multipart"
    assert "with checksum crc32:" in wrong.observed


def test_a_store_that_ignores_conditions(server: FaultyS3, store: S3Store) -> None:
    assert set(states(list(check_store(store, "orders"))).values()) == {"ok"}
    server.ignores_conditions = True
    findings = list(check_store(store, "orders"))
    assert {name for name, state in states(findings).items() if state != "ok"} == {"create-only", "replace-only"}
    created, replaced = (check for check in findings if check.severity == "problem")
    assert "ignores `If-None-Match: *`" in created.observed
    assert "different plans of one interval" in created.means
    assert "ignores `If-Match`" in replaced.observed
    assert "proved without their records" in replaced.means
    assert list(server.store.list("")) == []


@pytest.mark.parametrize(
    ("operation", "fault", "name"),
    [
        ("create", refuse(501, "NotImplemented"), "create-only"),
        ("replace", refuse(501, "NotImplemented"), "replace-only"),
        ("put_object", refuse(403, "AccessDenied"), "put, get, head, list, delete"),
        ("complete_multipart_upload", refuse(403, "AccessDenied"), "multipart"),
        ("upload_part", Fault("odd"), "multipart"),
    ],
)
def test_a_store_that_refuses_one_thing(
    server: FaultyS3, store: S3Store, operation: str, fault: Fault, name: str
) -> None:
    server.fail(operation, *[fault] * 4)
    findings = list(check_store(store, "orders"))
    assert [check.kind for check in findings if check.severity == "problem"] == [name]
    assert list(server.store.list("")) == list(server.store.list_uploads("")) == []


def test_nothing_else_is_tried_where_the_store_cannot_be_listed(server: FaultyS3, store: S3Store) -> None:
    server.fail("list_objects_v2", refuse(403, "AccessDenied"))
    [check] = check_store(store, "orders")
    assert (check.kind, check.severity) == ("store", "problem")
    assert server.requests == ["list_objects_v2"]


def test_what_cannot_be_removed_is_named(server: FaultyS3, store: S3Store) -> None:
    server.fail("delete_object", *[refuse(403, "AccessDenied")] * 9)
    findings = list(check_store(store, "orders"))
    assert [check.kind for check in findings if check.severity == "problem"] == [
        "put, get, head, list, delete",
        "probe",
    ]
    assert probe_prefix("orders") in findings[-1].observed


@pytest.mark.parametrize(
    ("seconds", "state", "text"),
    [
        (0, "ok", "agrees"),
        (-1, "ok", "agrees"),
        (31, "warning", "31 s ahead"),
        (-32, "warning", "31 s behind"),
        (400, "problem", "400 s ahead of ours"),
    ],
)
def test_the_clock_of_the_store(seconds: int, state: str, text: str) -> None:
    check = check_clock(FIVE + timedelta(seconds=seconds), FIVE, FIVE)
    assert check.severity == state
    assert text in check.observed


@pytest.mark.parametrize("part", [spark.drain, spark.rows])
def test_a_job_that_reads_in_python_is_a_warning_with_the_command_that_changes_it(
    monkeypatch: pytest.MonkeyPatch, part: ModuleType
) -> None:
    for each in (spark.drain, spark.rows):
        monkeypatch.setattr(each, "why_not", lambda: "")
    monkeypatch.setattr(part, "why_not", lambda: "this installation has no drain.so")
    [*_, finding] = check_submit("spark-submit", {"PATH": ""})
    assert states([finding]) == {"reader": "warning"}
    assert "no drain.so" in finding.observed
    assert "python -m kafka_archiver.records.native.compile" in str(finding.actions)


def test_what_submits_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in (spark.drain, spark.rows):
        monkeypatch.setattr(part, "why_not", lambda: "")

    def program(name: str, text: str) -> None:
        (tmp_path / "bin").mkdir(exist_ok=True)
        file = tmp_path / "bin" / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    environment = {"PATH": str(tmp_path / "bin")}
    assert states(list(check_submit("spark-submit", environment))) == {
        "spark-submit": "problem", "java": "problem", "reader": "ok",
    }  # fmt: skip
    program("spark-submit", "")
    program("java", "echo 'openjdk version \"17.0.9\"' >&2")
    assert states(list(check_submit("spark-submit", environment))) == {
        "spark-submit": "ok", "java": "ok", "reader": "ok",
    }  # fmt: skip
    assert states(list(check_submit("spark3-submit", environment)))["spark-submit"] == "problem"
    program("java", "echo 'no room' >&2; exit 3")
    [_, java, _] = check_submit("spark-submit", {**environment, "JAVA_HOME": str(tmp_path)})
    assert "ended with 3: no room" in java.observed
    assert states(list(check_submit("spark-submit", {**environment, "JAVA_HOME": "/none"})))["java"] == "problem"


def neighbour(name: str, source: str, place: str = "") -> Archive:
    text = f"archive: {name}\nsource: {{{source}}}\nstore: {{url: 's3://lake/{place or name}'}}\n"
    return parse_archive(text, name)


def test_groups_of_which_plans_keep_no_offsets_are_named() -> None:
    twin = KafkaTwin(lambda: 0)
    twin.create_topic("orders")
    archive = Archive.model_validate(
        {
            "archive": "orders",
            "source": {"topics": ["orders"], "snapshot_groups": ["app-.*"]},
            "store": {"url": "memory://x"},
        }
    )
    cluster: Any = twin
    assert [finding.severity for finding in check_groups(archive, cluster, ["orders"])] == ["warning"]
    twin.reset_group("app-1", {TopicPartition("orders", 0): 1})
    [finding] = check_groups(archive, cluster, ["orders"])
    assert (finding.severity, finding.observed) == (
        "ok", "1 groups with offsets match source.snapshot_groups: app-1",
    )  # fmt: skip


def test_two_archives_in_one_place() -> None:
    mine = neighbour("a", "topics: [orders]", "x")
    archives = [mine, neighbour("b", "topics: [returns]", "x"), neighbour("c", "topics: [orders]", "y")]
    assert list(check_neighbours(mine, archives)) == []
    [check] = check_neighbours(mine, [*archives, neighbour("d", "topics: [orders]", "x/")])
    assert "archive d has the same topics" in check.observed


def test_two_archives_in_one_group() -> None:
    mine = neighbour("a", "topics: [orders], group: g")
    apart = ["topics: [orders]", "topics: [orders], group: g, kafka: other", "topics: [returns], group: g"]
    assert list(check_neighbours(mine, [mine, *(neighbour("b", source) for source in apart)])) == []
    for source in ("topics: [returns, orders], group: g", "pattern: 'o.*', group: g"):
        [check] = check_neighbours(mine, [neighbour("b", source)])
        assert "archive b keeps its position in the same group, g," in check.observed


def test_what_the_format_does_not_have_is_found_before_a_run_meets_it() -> None:
    text = "archive: a\nsource: {topics: [t]}\nstore: {url: s3://b/p, format: avro}\n"
    [finding] = (c for c in examine(parse_archive(text, "a.yaml"), None, None, Facts(dag_id="d")) if c.kind == "format")
    assert (finding.severity, finding.observed) == (
        "problem",
        "a.yaml: store.content: format avro has record, found 'value'; to store columns, set `source.value.decode` "
        "(json needs `schema`, too)",
    )

"""The commands against a real Airflow, broker and S3 server; the few records there are, the job's driver writes."""

import json
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.store import open_store
from kafka_archiver.values.intervals import to_ms
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.airflow import Airflow
from tests.support.schedules import quiet_hours
from tests.support.topics import Record, delete_records, new_topic, produce

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def name(airflow: Airflow) -> Iterator[str]:
    """An archive of a topic that does not exist yet; its DAG is paused."""
    name = f"x{uuid.uuid4().hex[:8]}"
    schedule, _ = quiet_hours()
    # A retry, because a busy machine may end a task before it begins. A permanent error has none.
    dag = airflow.add_archive(
        name,
        f"schedule: {schedule}\nsource: {{topics: [t-{name}]}}\nstore: {{url: 's3://archive/{name}'}}\nretries: 1\n",
    )
    airflow.pause(dag)
    yield name
    airflow.remove_archive(name)


def backfill(airflow: Airflow, name: str, *words: str) -> tuple[int, list[str]]:
    """The exit code, and the lines of output, but for those that only say that it waits: a busy machine has more."""
    process = airflow.start_command("dags", "backfill", *words, f"archive_{name}")
    output, _ = process.communicate(timeout=300)
    return process.returncode, [line for line in output.splitlines() if not line.startswith("Waiting: ")]


def test_backfill_waits_for_the_scheduler(airflow: Airflow, kafka: Kafka, s3: S3, name: str) -> None:
    last = datetime.fromisoformat(airflow.request("GET", f"/dags/archive_{name}")["next_dagrun_data_interval_end"])
    first, second = (last - timedelta(hours=hours) for hours in (5, 4))
    airflow.pause(f"archive_{name}", False)
    code, output = backfill(airflow, name, "-s", first.isoformat())
    assert code == 1
    assert f"1/1  {first:%Y-%m-%dT%H:%M:%SZ}  failed" in output[1]
    # What failed, why, and where to read on.
    assert re.match(rf"    plan: \S+ could not describe topic t-{name}: it does not exist", output[2])
    assert output[3].startswith(f"    log: {airflow.url}/dags/archive_{name}/runs/")
    assert output[4].endswith(" has ended: 1 failed.")

    new_topic(kafka.bootstrap_servers, name=f"t-{name}")
    # Right after the first: Airflow itself would still take that one for active.
    options = ("--rerun-failed-tasks", "--run-backwards", "--max-active-runs", "1")
    code, output = backfill(airflow, name, "-s", first.isoformat(), "-e", second.isoformat(), *options)
    assert code == 0, output
    assert [line.split()[:3] for line in output[1:3]] == [
        ["1/2", f"{second:%Y-%m-%dT%H:%M:%SZ}", "success"],
        ["2/2", f"{first:%Y-%m-%dT%H:%M:%SZ}", "success"],
    ]
    assert output[0].endswith(": 2 runs, at most 1 at a time.")
    ledger = Ledger(open_store(f"s3://{s3.bucket}/{name}", s3.options()), name)
    plans = {plan.interval.start: plan for plan in ledger.following(0)}
    for start in first, second:
        assert plans[start].origin == "backfill"
        assert ledger.settled(plans[start].run)


def status_of(airflow: Airflow, name: str) -> Any:
    """Return what `status` says, whatever is wrong."""
    process = airflow.start_command("archive", "status", name, "--output", "json")
    output, _ = process.communicate(timeout=300)
    # What it says on stderr comes last.
    [status], _ = json.JSONDecoder().raw_decode(output[output.index("[\n") :])
    return status


def run_command(airflow: Airflow, *words: str) -> tuple[int, str]:
    """The exit code of `airflow archive …`, and its output."""
    process = airflow.start_command("archive", *words)
    output, _ = process.communicate(timeout=300)
    return process.returncode, output


HOUR_AGO = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)


def records(numbers: range) -> list[Record]:
    return [Record(0, to_ms(HOUR_AGO) + n, b"%d" % n) for n in numbers]


@pytest.fixture
def by_hand(airflow: Airflow, kafka: Kafka) -> Iterator[str]:
    """An archive without a schedule, whose topic has ten records, and one that its format cannot hold."""
    name = f"x{uuid.uuid4().hex[:8]}"
    new_topic(kafka.bootstrap_servers, name=f"t-{name}")
    produce(kafka.bootstrap_servers, f"t-{name}", [*records(range(10)), Record(0, to_ms(HOUR_AGO), b"no\nline")])
    airflow.add_archive(
        name,
        f"schedule: null\nretries: 0\nsource: {{topics: [t-{name}]}}\npolicies: {{bad_record: dead_letter}}\n"
        f"store: {{url: 's3://archive/{name}', chunk_records: 4}}\n",
    )
    airflow.pause(f"archive_{name}", False)
    yield name
    airflow.remove_archive(name)


@pytest.mark.timeout(900)
def test_rebuild_repair_audit_dead_letters_and_a_choice_for_one_run(
    airflow: Airflow, kafka: Kafka, s3: S3, by_hand: str
) -> None:
    dag, topic, store = f"archive_{by_hand}", f"t-{by_hand}", s3.client()
    ledger = Ledger(open_store(f"s3://{s3.bucket}/{by_hand}", s3.options()), by_hand)

    def stored() -> dict[str, bytes]:
        objects = store.list_objects_v2(Bucket=s3.bucket, Prefix=f"{by_hand}/")["Contents"]
        return {o["Key"]: store.get_object(Bucket=s3.bucket, Key=o["Key"])["Body"].read() for o in objects}

    airflow.trigger(dag)
    assert list(airflow.wait_for_runs(dag, 1).values()) == ["success"]
    code, output = run_command(airflow, "rebuild", by_hand, "--hour", f"{HOUR_AGO:%Y-%m-%dT%H:%M:%SZ}", "--yes")
    assert code == 0, output
    before = stored()
    *archived, letter = sorted((key for key in before if key.endswith(".jsonl.gz")), key=lambda k: "_dead_" in k)
    first, second, _ = archived
    assert all("+r1." in key for key in (*archived, letter))

    # What Kafka has is written again, and what is derived is computed again.
    progress = f"{by_hand}/_ledger/{by_hand}/progress.json"
    store.delete_object(Bucket=s3.bucket, Key=second)
    store.put_object(Bucket=s3.bucket, Key=progress, Body=b"{")
    audit = f"audit_{by_hand}"
    airflow.pause(airflow.parsed(audit), False)
    damaged = airflow.trigger(audit, live=False)
    assert airflow.wait_for_runs(audit, 1) == {damaged: "failed"}
    # It is of no use to look again.
    assert {t.task: (t.state, t.attempt) for t in airflow.tasks(audit)}["audit"] == ("failed", 1)
    assert "object-missing" in airflow.log(audit, damaged, "audit")
    code, output = run_command(airflow, "repair", by_hand, "--yes")
    assert (code, f"Repair of {by_hand}: done" in output) == (0, True), output
    # The intent says that somebody was at work again, and the audit has left its report.
    other = {key.rsplit("/", 1)[1] for key, data in stored().items() if before.get(key) != data}
    assert other == {"intent.json", "audit.json"}

    # Dead letters come back once the YAML is mended, though Kafka has no record of them any more.
    delete_records(kafka.bootstrap_servers, topic, 11)
    yaml = airflow.archives / f"{by_hand}.yaml"
    yaml.write_text(yaml.read_text().replace("store: {", "store: {content: record, "))
    code, output = run_command(airflow, "replay-dead-letters", by_hand, "--all", "--yes")
    assert (code, f"Dead letters of {by_hand}: done" in output) == (0, True), output
    *_, replay = ledger.following(0)
    manifest = ledger.manifest(replay.run)
    assert manifest
    assert (replay.origin, manifest.account["archived"]) == ("dead_letters", 11)
    assert ledger.settled(replay.run)

    # What Kafka has lost stops a run until somebody chooses, and an object of it is on record as lost.
    produce(kafka.bootstrap_servers, topic, records(range(11, 20)))
    delete_records(kafka.bootstrap_servers, topic, 14)
    store.delete_object(Bucket=s3.bucket, Key=first)
    airflow.trigger(dag)
    assert sorted(airflow.wait_for_runs(dag, 5).values()) == ["failed", *["success"] * 4]
    troubles = {trouble["name"]: trouble["found"] for trouble in status_of(airflow, by_hand)["troubles"]}
    assert set(troubles) == {"lost offsets", "failed for good"}
    # As the task itself has noted it.
    assert " failed in task plan: 3 offsets of " in troubles["failed for good"]
    airflow.trigger(dag, policies={"lost_offsets": "record_loss"})
    assert sorted(airflow.wait_for_runs(dag, 6).values()) == ["failed", *["success"] * 5]
    code, output = run_command(airflow, "repair", by_hand, "--yes")
    assert (code, "1 object of run" in output) == (0, True), output
    assert second in stored()
    assert first not in stored()
    # Nothing has to be told to the next run.
    airflow.trigger(dag)
    assert sorted(airflow.wait_for_runs(dag, 7).values()) == ["failed", *["success"] * 6]
    clean = airflow.trigger(audit, deep=True, live=True)
    assert airflow.wait_for_runs(audit, 2)[clean] == "success"
    assert "7 offsets lost for ever" in airflow.log(audit, clean, "audit")

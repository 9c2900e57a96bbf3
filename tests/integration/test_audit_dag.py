"""The DAG that audits, on a real Airflow: a clean archive succeeds, a damaged one fails and says how."""

import json
import uuid

import pytest

from kafka_archiver.store import open_store
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.airflow import Airflow
from tests.support.topics import new_topic
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_dag_that_audits(airflow: Airflow, kafka: Kafka, s3: S3) -> None:
    name = f"x{uuid.uuid4().hex[:8]}"
    topic = new_topic(kafka.bootstrap_servers)
    store = open_store(f"s3://{s3.bucket}/{name}", s3.options())
    # With a schedule its audit of the night would come beside ours.
    settings = f"schedule: null\nsource: {{topics: [{topic}]}}\nstore: {{url: '{store.url}'}}\n"
    airflow.pause(airflow.add_archive(name, settings))
    dag = f"audit_{name}"
    until(lambda: airflow.request("GET", f"/dags/{dag}", missing_ok=True), seconds=60, every=0.5)
    airflow.pause(dag, False)
    try:
        first = airflow.trigger(dag, deep=True)
        assert airflow.wait_for_runs(dag, 1) == {first: "success"}
        report = json.loads(store.get(f"_ledger/{name}/audit.json") or b"")
        assert (report["verdict"], report["deep"], report["live"]) == ("clean", True, True)

        store.put(f"{topic}/date=2026-11-20/hour=05/notes.txt", b"x")
        second = airflow.trigger(dag)
        assert airflow.wait_for_runs(dag, 2)[second] == "failed"
        # It is of no use to look again.
        assert {t.task: (t.state, t.attempt) for t in airflow.tasks(dag, second)}["audit"] == ("failed", 1)
        log = airflow.log(dag, second, "audit")
        assert f"{name}: damaged: 1 error, 0 warnings" in log
        assert f"{topic}/date=2026-11-20/hour=05/notes.txt: unexplained" in log
        assert json.loads(store.get(f"_ledger/{name}/audit.json") or b"")["verdict"] == "damaged"
    finally:
        airflow.pause(dag)
        airflow.remove_archive(name)

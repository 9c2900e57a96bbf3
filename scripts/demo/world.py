"""The demo's environment: an archive on this checkout's stack, its topic, its objects and its DAG."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafka_archiver.config import load_archive
from scripts.demo.orders import Batch
from scripts.demo.tell import until
from scripts.stack.choices import Choices
from scripts.stack.errors import StackError
from scripts.stack.process import marked
from scripts.stack.rest import RestApi, address
from scripts.stack.stack import Stack

PARTITIONS = 4
# Errors of brokers that have just started, or are still deleting a topic of this name.
NOT_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.TOPIC_ALREADY_EXISTS,
)
_GONE = (KafkaError.GROUP_ID_NOT_FOUND, KafkaError.UNKNOWN_TOPIC_OR_PART)


class World:
    """:raises ConfigError: the stack has another archives directory, without this archive."""

    def __init__(self, name: str) -> None:
        choices = Choices.remembered()
        stack = Stack.of(choices)
        archive = load_archive(Path(choices.archives) / f"{name}.yaml")
        self.archive, self.group = archive.archive, archive.group
        [self.topic] = archive.source.topics or [name]
        self.registry = stack.registry.url
        self.url = archive.store.url
        self._bucket, _, self.prefix = self.url.removeprefix("s3://").partition("/")
        self._s3 = stack.s3.client()
        self.airflow, self.dag = stack.airflow, f"archive_{archive.archive}"
        self._api = RestApi(stack.airflow.url)
        self._client: dict[str, Any] = {"bootstrap.servers": stack.kafka.bootstrap_servers, "log_level": 2}
        self._admin = AdminClient(self._client)

    # The topic.

    def _patiently(self, futures: Any, name: str, *harmless: int) -> bool | None:
        """True if the request succeeded or its error is harmless; None while the brokers are not ready."""
        try:
            futures[name].result(30)
        except KafkaException as error:
            code = error.args[0].code()
            if code in NOT_YET:
                return None
            if code not in harmless:
                raise
        return True

    def new_topic(self) -> None:
        """Delete and create the topic, and delete its group."""
        admin = self._admin
        until(lambda: (self._patiently(admin.delete_consumer_groups([self.group]), self.group, *_GONE), ""), 60)
        self.forget_topic(self.topic)
        new = NewTopic(self.topic, PARTITIONS, 1)
        until(lambda: (self._patiently(admin.create_topics([new]), self.topic), f"topic {self.topic} is made"), 60)

    def forget_topic(self, topic: str) -> None:
        """Delete a topic, if it is there."""
        until(lambda: (self._patiently(self._admin.delete_topics([topic]), topic, *_GONE), ""), 60)

    def committed_values(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Read keys and values of all committed records of a topic, with a plain consumer."""
        settings = {"group.id": f"{self.group}-look", "enable.auto.commit": False, "enable.partition.eof": True}
        consumer = Consumer({**self._client, **settings, "isolation.level": "read_committed"})
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        ends, records = 0, []
        while ends < len(partitions):
            message = consumer.poll(30)
            if message is None:
                raise StackError(f"topic {topic}: the broker did not send its records within 30 s")
            error = message.error()
            if error is None:
                records.append((message.key(), message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                ends += 1
            else:
                raise StackError(f"topic {topic}: {error}")
        consumer.close()
        return records

    def fill(self, batches: Iterable[Batch]) -> None:
        """Produce all records in order. :raises StackError: the broker did not confirm all of them."""
        settings = {**self._client, "linger.ms": 20, "queue.buffering.max.messages": 300_000}
        plain = Producer(settings)
        for number, batch in enumerate(batches):
            if batch.transaction == "none":
                self._send(plain, batch)
                continue
            producer = Producer({**settings, "transactional.id": f"demo-{number}"})
            producer.init_transactions(30)
            producer.begin_transaction()
            self._send(producer, batch)
            (producer.commit_transaction if batch.transaction == "committed" else producer.abort_transaction)(30)

    def _send(self, producer: Producer, batch: Batch) -> None:
        failures: list[str] = []
        for event in batch.events:
            producer.produce(
                self.topic,
                event.value,
                event.key,
                timestamp=event.timestamp,
                headers=list(event.headers),
                on_delivery=lambda error, _: failures.append(str(error)) if error else None,
            )
        if (left := producer.flush(60)) or failures:
            raise StackError(f"Kafka did not confirm {left + len(failures):,} records: {failures[:1]}")

    def begin_at(self, timestamp: int) -> list[int]:
        """Set the group to the first records of this time, like `kafka-consumer-groups --reset-offsets`."""
        consumer = Consumer({**self._client, "group.id": self.group, "enable.auto.commit": False})
        partitions = [TopicPartition(self.topic, number, timestamp) for number in range(PARTITIONS)]
        offsets = consumer.offsets_for_times(partitions, 30)
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()
        return [place.offset for place in offsets]

    def stands(self) -> list[tuple[int, int]]:
        """Return of each partition the group's offset and the end of the log."""
        consumer = Consumer({**self._client, "group.id": self.group})
        names = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        ends = [consumer.get_watermark_offsets(name, 30)[1] for name in names]
        positions = list(zip([place.offset for place in consumer.committed(names, 30)], ends, strict=True))
        consumer.close()
        return positions

    # The bucket, read with an S3 client alone.

    def objects(self) -> dict[str, str]:
        """The ETag of each object by its key."""
        return self._stored(f"{self.topic}/")

    def plans(self) -> set[str]:
        """The ETags of all plans: one per run."""
        return {etag for key, etag in self._stored(f"_ledger/{self.archive}/").items() if key.endswith("/plan.json")}

    def _stored(self, below: str) -> dict[str, str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=f"{self.prefix}/{below}")
        return {item["Key"]: item["ETag"] for page in pages for item in page.get("Contents", ())}

    def uploads(self) -> list[tuple[str, str]]:
        """Key and id of the pending uploads."""
        answer = self._s3.list_multipart_uploads(Bucket=self._bucket, Prefix=f"{self.prefix}/{self.topic}/")
        return [(u["Key"], u["UploadId"]) for u in answer.get("Uploads", ())]

    def download(self, directory: Path) -> None:
        """Download all objects, with the paths of the bucket."""
        for key in self.objects():
            (directory / key).parent.mkdir(parents=True, exist_ok=True)
            self._s3.download_file(self._bucket, key, str(directory / key))

    def clear(self) -> None:
        """Delete the objects, uploads and ledger."""
        for key in [*self.objects(), *self._stored(f"_ledger/{self.archive}/")]:
            self._s3.delete_object(Bucket=self._bucket, Key=key)
        for key, upload in self.uploads():
            self._s3.abort_multipart_upload(Bucket=self._bucket, Key=key, UploadId=upload)

    # The DAG, through Airflow's REST API.

    def ask(self, method: str, *place: str, body: object = None, **query: Any) -> Any:
        """Send a request for the DAG, or a resource below it; None if it does not exist."""
        return self._api.ask(method, address("dags", self.dag, *place), body, missing_ok=True, **query)

    def tasks(self, run: str) -> dict[str, tuple[str, int]]:
        """State and attempt of the tasks that have started, in order."""
        instances = self.ask("GET", "dagRuns", run, "taskInstances", order_by="start_date")["task_instances"]
        return {t["task_id"]: (t["state"], t["try_number"]) for t in instances if t["state"]}

    def forget_dag(self) -> None:
        """Delete the DAG, with its runs, from Airflow, which parses it again."""

        def forgotten() -> tuple[bool | None, str]:
            try:
                self.ask("DELETE")
            except StackError as error:
                return None, f"tasks of an earlier demo are at work: {error}"
            return True, ""

        self.wait_for_dag()
        self.ask("PATCH", body={"is_paused": True})
        self.kill_job()
        until(forgotten, 120)
        # Airflow keeps the logs of deleted runs, and would append the logs of new runs with the same name.
        shutil.rmtree(self.airflow.directory / "logs" / f"dag_id={self.dag}", ignore_errors=True)

    def wait_for_dag(self) -> None:
        """Wait until Airflow has parsed the DAG. A new one is paused."""

        def loaded() -> tuple[bool | None, str]:
            is_loaded = self.ask("GET") is not None
            return is_loaded or None, f"DAG {self.dag} is {'there' if is_loaded else 'being parsed'}"

        until(loaded, 120)

    def unpause(self) -> str:
        """Unpause the DAG; wait until its timetable has started a run for the last complete hour. Returns its id."""

        def scheduled() -> tuple[str | None, str]:
            runs = [r["dag_run_id"] for r in self.ask("GET", "dagRuns")["dag_runs"] if r["run_type"] == "scheduled"]
            return (runs[0] if runs else None), "waiting for the scheduler"

        self.ask("PATCH", body={"is_paused": False})
        return until(scheduled, 120)

    def how_far(self, run: str) -> str:
        """The tasks of a run that have started, as text."""
        return " · ".join(f"{task} {state} ({attempt})" for task, (state, attempt) in self.tasks(run).items())

    def wait_for(self, run: str) -> str:
        """Wait until a run has ended. Returns its state."""

        def ended() -> tuple[str | None, str]:
            state = self.ask("GET", "dagRuns", run)["state"]
            return (state if state in ("success", "failed") else None), self.how_far(run)

        return until(ended, 360)

    def kill_job(self) -> int:
        """SIGKILL for spark-submit's JVM and its Python processes, like the kernel's OOM killer. The Airflow task above
        them lives on. Returns the number of killed processes.
        """
        killed = 0
        for process in list(marked(self.airflow.directory)):
            with suppress(psutil.NoSuchProcess):
                command = process.cmdline()
                if "org.apache.spark.deploy.SparkSubmit" in command and self.dag in command:
                    for victim in [process, *process.children(recursive=True)]:
                        victim.kill()
                        killed += 1
        return killed

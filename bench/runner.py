"""Runs a scenario: archives a topic with the real job, and with the bare program."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.commands import measured
from bench.figures import Bare, Result
from bench.job import JobRun, JobSettings, archive
from bench.records import records
from bench.scenarios import Scenario
from bench.services import Services
from bench.topics import fill
from bench.usage import Usage
from scripts.stack.paths import BIN

# Enough records for two tasks, so that start-up includes as many Python workers as the run has.
FEW = 10_000
Say = Callable[[str], None]


class Bench:
    """Runs scenarios on `number` records each."""

    def __init__(self, services: Services, settings: JobSettings, number: int, say: Say) -> None:
        self._services, self._settings, self._number, self._say = services, settings, number, say

    def run(self, name: str, scenario: Scenario, bare: bool) -> Result:
        """Measure a scenario: start-up, the job and, if wanted, the bare program."""
        topic = self._fill(name, scenario, self._number)
        # Start-up does not depend on the records.
        few = self._fill(name, Scenario(size=scenario.size), FEW)
        self._say(f"{name}: start-up, then the job")
        tiny, run = self._archive(scenario, few), self._archive(scenario, topic)
        beside = self._bare(name, scenario, topic, few) if bare else None
        return Result(name=name, tiny=tiny, run=run, cores=self._settings.cores, bare=beside)

    def draw(self, name: str, scenario: Scenario, file: Path) -> None:
        """Draw where the time of its job goes, instead of measuring it."""
        topic = self._fill(name, scenario, self._number)
        self._say(f"{name}: the job, sampled, to {file}")
        self._archive(scenario, topic, file)

    def _fill(self, name: str, scenario: Scenario, number: int) -> str:
        topic = scenario.topic(number)
        self._say(f"{name}: {number:,} records in {topic} (kept for later runs)")
        made = records(number, scenario.size, scenario.hours, scenario.partitions, scenario.skewed)
        fill(self._services.kafka.bootstrap_servers, topic, scenario.partitions, made, number)
        return topic

    def _archive(self, scenario: Scenario, topic: str, flame_graph: Path | None = None) -> JobRun:
        settings = replace(self._settings, store={**scenario.store, **self._settings.store})
        return archive(self._services, topic, settings, flame_graph)

    def _bare(self, name: str, scenario: Scenario, topic: str, few: str) -> Bare:
        self._say(f"{name}: the bare program")
        tiny = self._copy(few, Scenario(size=scenario.size).partitions)
        return Bare(run=self._copy(topic, scenario.partitions), tiny=tiny)

    def _copy(self, topic: str, partitions: int) -> Usage:
        s3 = self._services.s3
        environment = {
            "KAFKA_BOOTSTRAP_SERVERS": self._services.kafka.bootstrap_servers,
            "S3_ENDPOINT_URL": s3.endpoint_url,
            "AWS_ACCESS_KEY_ID": s3.owner.access_key,
            "AWS_SECRET_ACCESS_KEY": s3.owner.secret_key,
            "AWS_DEFAULT_REGION": s3.region,
        }
        command = [str(BIN / "python"), "-m", "bench.bare", topic, str(partitions), s3.bucket]
        return measured(command, self._services.directory / "bare.log", environment)

"""Runs a scenario: archives a topic with the real job, and with the bare program."""

from collections.abc import Callable
from dataclasses import replace

from bench.commands import measured
from bench.figures import Bare, Result
from bench.job import JobRun, JobSettings, archive
from bench.records import records
from bench.scenarios import Scenario
from bench.services import Services
from bench.topics import fill
from bench.usage import Usage
from scripts.stack.paths import BIN
from scripts.stack.settings import client_settings

# Enough records for two tasks, so that start-up includes as many Python workers as the run has.
FEW = 20_000
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

    def _fill(self, name: str, scenario: Scenario, number: int) -> str:
        topic = scenario.topic(number)
        self._say(f"{name}: {number:,} records in {topic} (kept for later runs)")
        batches = records(number, scenario.size, scenario.hours, scenario.partitions, scenario.skewed)
        fill(self._services.kafka.bootstrap_servers, topic, scenario.partitions, batches, number)
        return topic

    def _archive(self, scenario: Scenario, topic: str) -> JobRun:
        return archive(
            self._services, topic, replace(self._settings, store=scenario.store, transform=scenario.transform)
        )

    def _bare(self, name: str, scenario: Scenario, topic: str, few: str) -> Bare:
        self._say(f"{name}: the bare program")
        tiny = self._copy(few, Scenario(size=scenario.size).partitions)
        return Bare(run=self._copy(topic, scenario.partitions), tiny=tiny)

    def _copy(self, topic: str, partitions: int) -> Usage:
        kafka, s3 = self._services.kafka, self._services.s3
        command = [str(BIN / "python"), "-m", "bench.bare", topic, str(partitions), s3.bucket]
        environment = client_settings(kafka.bootstrap_servers, s3)
        return measured(command, self._services.directory / "bare.log", environment)

"""Runs a scenario: a topic, archived by the real job, beside the floors and the bare program."""

from collections.abc import Callable
from dataclasses import replace

from bench.commands import measured
from bench.figures import Bare, Floors, Result
from bench.floors import compress_and_put, java_consumer
from bench.job import JobRun, JobSettings, archive, beside_zlib, plain_parquet
from bench.profile import Profile
from bench.records import records
from bench.scenarios import Scenario
from bench.services import Services
from bench.topics import fill
from bench.usage import Usage
from scripts.stack.paths import BIN

# So many records take two tasks, and so as many Python workers as the run has: starting them is start-up.
FEW = 10_000
Say = Callable[[str], None]


class Bench:
    """Runs scenarios on `number` records each."""

    def __init__(self, services: Services, settings: JobSettings, number: int, say: Say) -> None:
        self._services, self._settings, self._number, self._say = services, settings, number, say
        self._floors: dict[str, Floors] = {}

    def run(self, name: str, scenario: Scenario, floors: bool) -> Result:
        """Measure one. Floors are measured once for each topic, start-up and the bare program each time."""
        topic = self._fill(name, scenario, self._number)
        # Start-up is the same whatever the records are like.
        few = self._fill(name, Scenario(size=scenario.size), FEW)
        is_parquet = scenario.store.get("format") == "parquet"
        self._say(f"{name}: start-up, then the job")
        tiny, run = self._archive(scenario, few), self._archive(scenario, topic)
        return Result(
            name=name,
            tiny=tiny,
            run=run,
            cores=self._settings.cores,
            floors=self._floors_of(scenario, topic, few) if floors and scenario.is_lines else None,
            bare=self._bare(name, scenario, topic, few) if floors else None,
            zlib_ratio=beside_zlib(self._services, run) if floors and scenario.is_lines else None,
            plain_bytes=plain_parquet(self._services, run) if floors and is_parquet else None,
        )

    def profile(self, name: str, scenario: Scenario, profile: Profile) -> str:
        """Sample the job of one. Returns where its time went."""
        topic = self._fill(name, scenario, self._number)
        self._say(f"{name}: the job, sampled")
        return profile.finish(self._archive(scenario, topic, profile).usage)

    def _fill(self, name: str, scenario: Scenario, number: int) -> str:
        topic = scenario.topic(number)
        self._say(f"{name}: {number:,} records in {topic} (kept for later runs)")
        made = records(number, scenario.size, scenario.hours, scenario.partitions, scenario.skewed)
        fill(self._services.kafka.bootstrap_servers, topic, scenario.partitions, made, number)
        return topic

    def _archive(self, scenario: Scenario, topic: str, profile: Profile | None = None) -> JobRun:
        settings = replace(self._settings, store={**scenario.store, **self._settings.store})
        return archive(self._services, topic, settings, profile)

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

    def _floors_of(self, scenario: Scenario, topic: str, few: str) -> Floors:
        if topic not in self._floors:
            self._say(f"{topic}: floor 1, a plain Java consumer")
            consume = java_consumer(self._services, topic, self._number) - java_consumer(self._services, few, FEW)
            self._say(f"{topic}: floor 2, gzip and PUT, {scenario.partitions} partitions one after the other")
            written, _ = compress_and_put(self._services, topic, scenario.partitions)
            self._floors[topic] = Floors(consume=consume, compress_and_put=written)
        return self._floors[topic]

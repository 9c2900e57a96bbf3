"""What is measured: a topic, archived by the real job, beside the floors."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.figures import Floors, Result
from bench.floors import compress_and_put, java_consumer
from bench.job import JobRun, JobSettings, archive
from bench.records import PARTITIONS, records
from bench.services import Services
from bench.topics import fill

# A plan this small takes as long as starting does.
TINY = 1000
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Records of `size` bytes with timestamps in `hours` hours; several hours come interleaved."""

    size: int
    hours: int

    @property
    def name(self) -> str:
        """How it is called in the table."""
        return f"{self.size} B" + (f", {self.hours} hours" if self.hours > 1 else "")

    def topic(self, number: int) -> str:
        """Its topic; another one for anything that makes other records."""
        return f"bench-{self.size}b-{self.hours}h-{number}"


class Bench:
    """Runs scenarios."""

    def __init__(self, services: Services, settings: JobSettings, say: Say) -> None:
        self._services, self._settings, self._say = services, settings, say
        self._tiny: dict[int, JobRun] = {}
        self._floors: dict[int, Floors] = {}

    def run(self, scenario: Scenario, number: int, floors: bool) -> Result:
        """Measure one. Start-up and floors are measured once for each size."""
        topic = self._fill(scenario, number)
        return Result(
            name=scenario.name,
            tiny=self._start_up(scenario),
            run=self._archive(scenario.name, topic),
            cores=self._settings.cores,
            floors=self._floors_of(scenario.size, topic, number) if floors else None,
        )

    def _fill(self, scenario: Scenario, number: int) -> str:
        topic = scenario.topic(number)
        self._say(f"{scenario.name}: {number:,} records into {topic} (kept for later runs)")
        made = records(number, scenario.size, scenario.hours)
        fill(self._services.kafka.bootstrap_servers, topic, PARTITIONS, made, number)
        return topic

    def _archive(self, name: str, topic: str) -> JobRun:
        self._say(f"{name}: the job")
        return archive(self._services, topic, self._settings)

    def _start_up(self, scenario: Scenario) -> JobRun:
        if scenario.size not in self._tiny:
            tiny = Scenario(size=scenario.size, hours=1)
            self._tiny[scenario.size] = self._archive(f"{tiny.name}, start-up", self._fill(tiny, TINY))
        return self._tiny[scenario.size]

    def _floors_of(self, size: int, topic: str, number: int) -> Floors:
        if size not in self._floors:
            self._say(f"{size} B: floor 1, a plain Java consumer")
            few = java_consumer(self._services, Scenario(size=size, hours=1).topic(TINY), TINY)
            consume = java_consumer(self._services, topic, number) - few
            self._say(f"{size} B: floor 2, gzip and PUT")
            written, _ = compress_and_put(self._services, topic)
            self._floors[size] = Floors(consume=consume, compress_and_put=written)
        return self._floors[size]

"""From what was measured to what is said of it. Pure."""

from dataclasses import dataclass
from typing import Any

from bench.job import JobRun
from bench.usage import Kind, Usage

MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bare:
    """The bare program on the same topic, and on one of a few records."""

    run: Usage
    tiny: Usage

    @property
    def cpu(self) -> float:
        """CPU seconds, start-up apart."""
        return self.run.total - self.tiny.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run of one scenario.

    :param tiny: the same job on a plan of a few records: start-up, which is taken off.
    :param bare: None if it was not run.
    """

    name: str
    run: JobRun
    tiny: JobRun
    cores: int
    bare: Bare | None = None

    def _per_million(self, seconds: float) -> float:
        """Of what is left when start-up, with its few records, is taken off."""
        return seconds / max(1, self.run.records - self.tiny.records) * MILLION

    @property
    def jvm(self) -> float:
        """CPU seconds of the JVM per million records, start-up apart."""
        return self._part("jvm")

    @property
    def driver(self) -> float:
        """CPU seconds of the Python driver per million records, start-up apart."""
        return self._part("driver")

    @property
    def workers(self) -> float:
        """CPU seconds of Spark's Python workers per million records, start-up apart."""
        return self._part("worker")

    def _part(self, kind: Kind) -> float:
        return self._per_million(self.run.usage.cpu.get(kind, 0.0) - self.tiny.usage.cpu.get(kind, 0.0))

    @property
    def total(self) -> float:
        """CPU seconds per million records, start-up apart."""
        return self.jvm + self.driver + self.workers

    @property
    def bare_total(self) -> float | None:
        """CPU seconds of the bare program per million records, start-up apart."""
        return None if self.bare is None else self._per_million(self.bare.cpu)

    @property
    def to_bare(self) -> float | None:
        """The job's CPU as a multiple of the bare program's."""
        return None if self.bare_total is None else self.total / self.bare_total

    @property
    def waiting(self) -> float | None:
        """Wall time as a multiple of CPU time ÷ cores, start-up apart: 1 when every core was busy all the time."""
        cpu = self.run.usage.total - self.tiny.usage.total
        return (self.run.usage.wall - self.tiny.usage.wall) * self.cores / cpu if cpu > 0 else None

    @property
    def idle(self) -> float | None:
        """Wall time as a multiple of all the machine's CPU time ÷ its cores, broker and store included."""
        cpu = self.run.usage.machine - self.tiny.usage.machine
        wall = self.run.usage.wall - self.tiny.usage.wall
        return wall * self.run.usage.machine_cores / cpu if cpu > 0 else None

    @property
    def others(self) -> float:
        """CPU seconds per million records of whatever else ran: the broker and the store."""
        run, tiny = self.run.usage, self.tiny.usage
        return self._per_million(run.machine - run.total - tiny.machine + tiny.total)

    @property
    def rate(self) -> float | None:
        """Records a second, start-up apart; None when the machine was too busy to tell."""
        seconds = self.run.usage.wall - self.tiny.usage.wall
        return (self.run.records - self.tiny.records) / seconds if seconds > 0 else None

    @property
    def memory_per_core(self) -> float:
        """Bytes: the most that all processes of the job held at a time, driver included, a core."""
        return self.run.usage.peak_total / self.cores

    def peak(self, kind: Kind) -> int:
        """Bytes: the largest process of a kind."""
        return self.run.usage.peak_process.get(kind, 0)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: all figures, and what they come from."""
        return {
            "scenario": self.name,
            "records": self.run.records,
            "records_per_second": self.rate,
            "cpu_seconds_per_million": {
                "jvm": self.jvm,
                "driver": self.driver,
                "workers": self.workers,
                "total": self.total,
            },
            "others_cpu_seconds_per_million": self.others,
            "bare_cpu_seconds_per_million": self.bare_total,
            "ratio_to_bare": self.to_bare,
            "cores": self.cores,
            "memory_bytes_per_core": self.memory_per_core,
            "objects": self.run.objects,
            "bytes": self.run.size,
            "job": self.run.usage.to_dict(),
            "start_up": self.tiny.usage.to_dict(),
        }

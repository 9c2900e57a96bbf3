"""Computes the figures from the measurements. Pure."""

from dataclasses import dataclass
from typing import Any

from bench.job import JobRun
from bench.usage import Kind, Usage

MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bare:
    """The bare program on the same topic, and on a topic of a few records."""

    run: Usage
    tiny: Usage

    @property
    def cpu(self) -> float:
        """CPU seconds without start-up."""
        return self.run.total - self.tiny.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run of one scenario.

    :param tiny: the same job on a plan of a few records: the start-up, which is subtracted.
    :param bare: None if the bare program did not run.
    """

    name: str
    run: JobRun
    tiny: JobRun
    cores: int
    bare: Bare | None = None

    def _per_million(self, seconds: float) -> float:
        """Seconds per million records; the records of the start-up run do not count."""
        return seconds / max(1, self.run.records - self.tiny.records) * MILLION

    def part(self, kind: Kind) -> float:
        """CPU seconds of the JVM, the driver or the workers per million records, without start-up."""
        return self._per_million(self.run.usage.cpu.get(kind, 0.0) - self.tiny.usage.cpu.get(kind, 0.0))

    @property
    def total(self) -> float:
        """CPU seconds per million records, without start-up."""
        return self.part("jvm") + self.part("driver") + self.part("worker")

    @property
    def bare_total(self) -> float | None:
        """CPU seconds of the bare program per million records, without start-up."""
        return None if self.bare is None else self._per_million(self.bare.cpu)

    @property
    def to_bare(self) -> float | None:
        """The job's CPU as a multiple of the bare program's."""
        return None if self.bare_total is None else self.total / self.bare_total

    @property
    def waiting(self) -> float | None:
        """Wall time ÷ (CPU time ÷ cores), without start-up: 1 if every core was always busy."""
        cpu = self.run.usage.total - self.tiny.usage.total
        return (self.run.usage.wall - self.tiny.usage.wall) * self.cores / cpu if cpu > 0 else None

    @property
    def idle(self) -> float | None:
        """Wall time ÷ (CPU time of the machine ÷ its cores), with broker and store."""
        cpu = self.run.usage.machine - self.tiny.usage.machine
        wall = self.run.usage.wall - self.tiny.usage.wall
        return wall * self.run.usage.machine_cores / cpu if cpu > 0 else None

    @property
    def other_processes(self) -> float:
        """CPU seconds per million records of all other processes: the broker and the store."""
        run, tiny = self.run.usage, self.tiny.usage
        return self._per_million(run.machine - run.total - tiny.machine + tiny.total)

    @property
    def rate(self) -> float | None:
        """Records per second, without start-up; None if the machine was too busy to measure."""
        seconds = self.run.usage.wall - self.tiny.usage.wall
        return (self.run.records - self.tiny.records) / seconds if seconds > 0 else None

    @property
    def memory_per_core(self) -> float:
        """Peak bytes of all processes of the job, with the driver, per core."""
        return self.run.usage.peak_total / self.cores

    def peak(self, kind: Kind) -> int:
        """Peak bytes of the largest process of a kind."""
        return self.run.usage.peak_process.get(kind, 0)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: all figures, and the measurements."""
        return {
            "scenario": self.name,
            "records": self.run.records,
            "records_per_second": self.rate,
            "cpu_seconds_per_million": {
                "jvm": self.part("jvm"),
                "driver": self.part("driver"),
                "workers": self.part("worker"),
                "total": self.total,
            },
            "others_cpu_seconds_per_million": self.other_processes,
            "bare_cpu_seconds_per_million": self.bare_total,
            "ratio_to_bare": self.to_bare,
            "cores": self.cores,
            "memory_bytes_per_core": self.memory_per_core,
            "objects": self.run.objects,
            "bytes": self.run.size,
            "job": self.run.usage.to_dict(),
            "start_up": self.tiny.usage.to_dict(),
        }

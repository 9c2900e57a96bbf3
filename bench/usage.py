"""What a command has used. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

Kind = Literal["jvm", "driver", "worker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One command, with all processes that came of it.

    :param cpu: CPU seconds by kind of process: JVMs, Python that is the driver (or any other), Spark's Python workers.
    :param peak_process: the largest resident size that one process of a kind ever had.
    :param peak_total: the most that all processes held at a time; pages that several share count once.
    :param machine: CPU seconds of everything on the machine while the command ran, broker and store included.
    :param machine_cores: how many cores it has.
    """

    code: int
    wall: float
    cpu: Mapping[Kind, float]
    peak_process: Mapping[Kind, int]
    peak_total: int
    machine: float = 0.0
    machine_cores: int = 1

    @property
    def total(self) -> float:
        """CPU seconds of all processes."""
        return sum(self.cpu.values())

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """What `to_dict` gave."""
        return cls(**data)

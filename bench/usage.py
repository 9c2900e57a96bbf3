"""The resources that a command has used. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

Kind = Literal["jvm", "driver", "worker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One command with all its processes.

    :param cpu: CPU seconds by kind of process: JVMs, the Python driver (or any other Python), Spark's Python workers.
    :param peak_process: bytes: the largest resident size of a single process, by kind.
    :param peak_total: bytes: the peak of all processes together; shared pages count once.
    :param machine: CPU seconds of the whole machine while the command ran, with broker and store.
    :param machine_cores: the machine's cores.
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
        """The inverse of `to_dict`."""
        return cls(**data)

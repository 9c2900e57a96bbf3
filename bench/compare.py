"""Compares this run with a saved one: which figures take more CPU than the noise of both explains. Pure."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

# The noise between two benches, as a share of the saved median: with several runs of each, and with fewer.
_NOISE, _NOISE_OF_ONE = 0.05, 0.10
_SEVERAL = 3

# The contents of `--json`: by scenario, its runs as `Result.to_dict` gives them.
Saved = Mapping[str, Sequence[Mapping[str, Any]]]


class Change(NamedTuple):
    """A figure's medians, and the smallest significant difference; CPU seconds."""

    scenario: str
    figure: str
    before: float
    current: float
    noise: float

    @property
    def slower(self) -> bool:
        """Return True if this run takes significantly more CPU."""
        return self.current - self.before > self.noise

    def __str__(self) -> str:
        verdict = "SLOWER" if self.slower else "faster" if self.before - self.current > self.noise else "same"
        part = (self.current - self.before) / self.before if self.before else 0.0
        figures = f"{self.before:.2f} → {self.current:.2f} CPU s ({part:+.0%}, noise {self.noise:.2f})"
        return f"{verdict:6}  {self.scenario}: {self.figure}: {figures}"


def changes(saved: Saved, current: Saved) -> list[Change]:
    """Every figure of both runs. :raises ValueError: they have no scenario in common."""
    common = [name for name in current if name in saved]
    if not common:
        raise ValueError(f"no common scenario: the saved run has {', '.join(saved)}, this one has {', '.join(current)}")
    return [
        _change(name, title, [pick(run) for run in saved[name]], [pick(run) for run in current[name]])
        for name in common
        for title, pick in _FIGURES.items()
    ]


def _change(scenario: str, title: str, before: Sequence[float], current: Sequence[float]) -> Change:
    enough = min(len(before), len(current)) >= _SEVERAL
    own = median(before) * (_NOISE if enough else _NOISE_OF_ONE)
    noise = max(own, max(before) - min(before), max(current) - min(current))
    return Change(scenario, title, median(before), median(current), noise)


def _per_million(run: Mapping[str, Any]) -> float:
    return float(run["cpu_seconds_per_million"]["total"])


def _start_up(run: Mapping[str, Any]) -> float:
    return float(sum(run["start_up"]["cpu"].values()))


_FIGURES = {"a million records": _per_million, "start-up": _start_up}

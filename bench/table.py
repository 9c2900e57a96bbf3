"""The results as a table: one row per figure, one column per scenario; medians of several runs. Pure."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from bench.figures import Result

_MIB = 1 << 20
Figure = Callable[[Result], float | None]


_ROWS: list[tuple[str, Figure, str]] = [
    ("records", lambda r: r.run.records, ",.0f"),
    ("records/s, start-up apart", lambda r: r.rate, ",.0f"),
    ("wall seconds, start-up included", lambda r: r.run.usage.wall, ".1f"),
    ("wall ÷ (CPU ÷ cores), start-up apart", lambda r: r.waiting, ".2f"),
    ("wall ÷ (CPU of the machine ÷ its cores)", lambda r: r.idle, ".2f"),
    ("start-up: wall seconds", lambda r: r.tiny.usage.wall, ".1f"),
    ("start-up: CPU seconds, JVM", lambda r: r.tiny.usage.cpu.get("jvm", 0), ".1f"),
    ("start-up: CPU seconds, driver", lambda r: r.tiny.usage.cpu.get("driver", 0), ".1f"),
    ("start-up: CPU seconds, workers", lambda r: r.tiny.usage.cpu.get("worker", 0), ".1f"),
    ("CPU s per million, JVM", lambda r: r.part("jvm"), ".2f"),
    ("CPU s per million, driver", lambda r: r.part("driver"), ".2f"),
    ("CPU s per million, workers", lambda r: r.part("worker"), ".2f"),
    ("CPU s per million, job", lambda r: r.total, ".2f"),
    ("beside it: broker and store", lambda r: r.other_processes, ".2f"),
    ("the bare program", lambda r: r.bare_total, ".2f"),
    ("job / bare program", lambda r: r.to_bare, ".2f"),
    ("peak MiB, JVM", lambda r: r.peak("jvm") / _MIB, ",.0f"),
    ("peak MiB, Python driver", lambda r: r.peak("driver") / _MIB, ",.0f"),
    ("peak MiB, largest Python worker", lambda r: r.peak("worker") / _MIB, ",.0f"),
    ("peak MiB a core, all processes", lambda r: r.memory_per_core / _MIB, ",.0f"),
    ("objects", lambda r: r.run.objects, ",.0f"),
    ("MB stored", lambda r: r.run.size / 1e6, ",.1f"),
]


def table(results: Mapping[str, Sequence[Result]]) -> str:
    """Aligned text. :param results: the runs of each scenario."""
    rows = [["", *results]]
    for title, figure, form in _ROWS:
        rows.append([title, *(_shown([figure(run) for run in runs], form) for runs in results.values())])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for title, *cells in rows:
        shown = [title.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))]
        lines.append("  ".join(shown).rstrip())
    return "\n".join(lines)


def _shown(values: Sequence[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    return format(median(known), form) if known else "–"

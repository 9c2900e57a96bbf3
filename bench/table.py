"""The results as a table: a row a figure, a column a scenario. Pure."""

from collections.abc import Callable, Sequence

from bench.figures import MILLION, Result

_MIB = 1 << 20


def _optional(value: Callable[[Result], float | None], form: str = ".2f") -> Callable[[Result], str]:
    def shown(result: Result) -> str:
        found = value(result)
        return "–" if found is None else format(found, form)

    return shown


def _per_million(result: Result, part: str) -> float | None:
    seconds: float | None = None if result.floors is None else getattr(result.floors, part)
    return None if seconds is None else seconds / result.run.records * MILLION


_ROWS: list[tuple[str, Callable[[Result], str]]] = [
    ("records", lambda r: f"{r.run.records:,}"),
    ("records/s, start-up apart", _optional(lambda r: r.rate, ",.0f")),
    ("wall seconds, start-up included", lambda r: f"{r.run.usage.wall:.1f}"),
    ("start-up: wall seconds", lambda r: f"{r.tiny.usage.wall:.1f}"),
    ("start-up: CPU seconds, JVM", lambda r: f"{r.tiny.usage.jvm:.1f}"),
    ("start-up: CPU seconds, Python", lambda r: f"{r.tiny.usage.python:.1f}"),
    ("CPU s per million, JVM", lambda r: f"{r.jvm:.2f}"),
    ("CPU s per million, Python", lambda r: f"{r.python:.2f}"),
    ("CPU s per million, job", lambda r: f"{r.total:.2f}"),
    ("floor 1: a plain Java consumer", _optional(lambda r: _per_million(r, "consume"))),
    ("floor 2: gzip and PUT", _optional(lambda r: _per_million(r, "compress_and_put"))),
    ("job / (floor 1 + floor 2)", _optional(lambda r: r.ratio)),
    ("peak MiB, JVM", lambda r: f"{r.peak('jvm') / _MIB:,.0f}"),
    ("peak MiB, Python driver", lambda r: f"{r.peak('driver') / _MIB:,.0f}"),
    ("peak MiB, largest Python worker", lambda r: f"{r.peak('worker') / _MIB:,.0f}"),
    ("peak MiB a core, all processes", lambda r: f"{r.memory_per_core / _MIB:,.0f}"),
    ("objects", lambda r: f"{r.run.objects:,}"),
    ("MB stored", lambda r: f"{r.run.size / 1e6:,.1f}"),
]


def table(results: Sequence[Result]) -> str:
    """Aligned text."""
    rows = [["", *(r.name for r in results)], *([title, *map(show, results)] for title, show in _ROWS)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for title, *cells in rows:
        shown = [title.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))]
        lines.append("  ".join(shown).rstrip())
    return "\n".join(lines)

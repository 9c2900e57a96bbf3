"""DuckDB on the archive's objects: neither our reader nor our ledger.

Reading s3:// itself needs DuckDB's extension httpfs, which it downloads; so the demo gives it copies of the objects.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from scripts.demo.check import Found
from scripts.demo.lake import hour_of, hour_start


def every_line(directory: Path) -> list[Found]:
    """All lines of all objects."""
    rows = duckdb.execute(
        f"""
        SELECT event_id, epoch_ms(created_at), filename
        FROM read_json('{directory}/**/*.jsonl.gz', format = 'newline_delimited', filename = true,
                       columns = {{event_id: 'VARCHAR', created_at: 'TIMESTAMPTZ'}})
        """
    ).fetchall()
    hours = {name: hour_start(hour_of(name)) for name in {row[2] for row in rows}}
    return [Found(id_, at, hours[name]) for id_, at, name in rows]


def best_countries(source: str) -> str:
    return (
        "SELECT country, count(*) AS orders, round(sum(amount), 2) AS euros, max(created_at) AS last\n"
        f"  FROM '{source}/*.jsonl.gz' WHERE type = 'order_placed'\n"
        "  GROUP BY country ORDER BY euros DESC LIMIT 5"
    )


def ask(question: str) -> str:
    """The answer as DuckDB draws it."""
    return str(duckdb.sql(question))

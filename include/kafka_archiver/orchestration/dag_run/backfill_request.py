"""A backfill in Airflow 3's terms, of the page or of `airflow dags backfill` with Airflow 2's options."""

import json
import shlex
from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from kafka_archiver.messages.errors import ConfigError


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """One backfill. `reprocess`: which existing runs to run again, `none`, `failed` or `completed`."""

    dag_id: str
    start: datetime
    end: datetime
    reprocess: str
    backwards: bool
    conf: dict[str, Any] | None
    max_active_runs: int | None

    @classmethod
    def of(cls, args: Namespace) -> Self:
        """Return the request that the arguments mean. Raises ConfigError."""
        start, end = args.start_date or args.end_date, args.end_date or args.start_date
        if start is None or end is None:
            raise ConfigError("No dates given; expected --start-date, --end-date or both.")
        if start > end:
            raise ConfigError(f"--start-date {start.isoformat()} is after --end-date {end.isoformat()}.")
        return cls(
            dag_id=args.dag_id,
            start=start,
            end=end,
            # As in Airflow 2, --reset-dagruns includes failed runs.
            reprocess="completed" if args.reset_dagruns else "failed" if args.rerun_failed_tasks else "none",
            backwards=args.run_backwards,
            conf=_conf(args.conf),
            max_active_runs=args.max_active_runs,
        )

    @property
    def equivalent(self) -> str:
        """The supported command that creates the same runs, without waiting for them."""
        words = ["airflow", "backfill", "create", "--dag-id", self.dag_id]
        words += ["--from-date", self.start.isoformat(), "--to-date", self.end.isoformat()]
        words += ["--reprocess-behavior", self.reprocess]
        words += ["--max-active-runs", str(self.max_active_runs)] if self.max_active_runs else []
        words += ["--run-backwards"] if self.backwards else []
        words += ["--dag-run-conf", json.dumps(self.conf)] if self.conf is not None else []
        return shlex.join(words)


def _conf(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        conf = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"--conf is not JSON: {error}; found {text!r}.") from None
    if not isinstance(conf, dict):
        raise ConfigError(f'--conf: expected a JSON object like {{"key": 1}}, found {text!r}.')
    return conf

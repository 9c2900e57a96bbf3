"""Tells what no run of an archive can tell, because none starts.

Every five minutes it looks at each archive's YAML file, at its ledger, and at what Airflow says of its DAGs:

| Alert | When |
|---|---|
| `paused` | the DAG is paused, and more and more offsets wait, or no hour has closed for longer than the limit |
| `late_hour` | no hour has closed for longer than `alerts.max_age`, or `health.max_age` |
| `unaudited`, `audit` | the audits do not run; the last one found damage of which nobody was told |
| `wrong_file`, `gone` | a YAML file is wrong, or was deleted |

Each is told once, to the archive's own receivers, or else to those in `ARCHIVER_WATCHDOG_ALERTS`. What stops this DAG
too (no scheduler, no worker) is for a prober outside of Airflow: `/archiver/health`.
"""

from airflow.sdk import get_parsing_context

from kafka_archiver.messages.advice import WATCHDOG
from kafka_archiver.orchestration.dags import watchdog_dag

if get_parsing_context().dag_id in (None, WATCHDOG):
    globals()[WATCHDOG] = watchdog_dag(text=__doc__ or "")

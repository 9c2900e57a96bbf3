"""Tidies an archive and checks it against its own ledger, once a day.

| Task | What it does |
|---|---|
| `clean_up` | removes what killed attempts and given-up rebuilds have left, once it is a day old |
| `audit` | compares documents, objects, proofs and progress with each other, and the ledger with the brokers |

It fails when the archive is damaged; its error names what, and `alerts.on_failure` is told. The audit changes
nothing but the report, `audit.json` in the ledger. Trigger it with `deep` to have every object read.
"""

from airflow.sdk import get_parsing_context

from kafka_archiver.orchestration.dags import audit_dags

# What is wrong with other YAML files, archive_errors.py beside this file shows.
globals().update(audit_dags(text=__doc__ or "", only=get_parsing_context().dag_id))

"""Tidies an archive and checks it against its own ledger, once a day.

| Task | What it does |
|---|---|
| `clean_up` | removes what killed attempts and given-up rebuilds have left, once it is a day old |
| `audit` | compares documents, objects, proofs and progress with each other, and the ledger with the brokers |

The task `audit` fails when the archive is damaged. Its error names the damage, and `alerts.on_failure` gets an alert.
The audit writes nothing but its report, `audit.json` in the ledger. Trigger it with `deep` to read every object.
"""

from airflow.sdk import get_parsing_context

from kafka_archiver.orchestration.dags import audit_dags

# archive_errors.py beside this file shows the errors of wrong YAML files.
globals().update(audit_dags(text=__doc__ or "", only=get_parsing_context().dag_id))

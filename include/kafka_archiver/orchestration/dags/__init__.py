"""The DAGs of the archives, for the modules in dags/."""

from kafka_archiver.orchestration.dags.archive import archive_dags
from kafka_archiver.orchestration.dags.audit import audit_dags
from kafka_archiver.orchestration.dags.restore import restore_dags
from kafka_archiver.orchestration.dags.watchdog import watchdog_dag

__all__ = ["archive_dags", "audit_dags", "restore_dags", "watchdog_dag"]

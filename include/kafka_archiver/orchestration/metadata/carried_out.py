"""The DAG runs that have worked on a run of the ledger, by the result of their task `plan`."""

from collections.abc import Collection

from airflow.models.xcom import XCOM_RETURN_KEY, XComModel
from airflow.utils.session import create_session
from sqlalchemy import String, cast, or_, select

from kafka_archiver.orchestration.dag_run.gate import PLAN

# Results that are read, and DAG runs of one run that are named, the last ones: each that fails has the run again.
_READ, _SHOWN = 500, 3


def dag_runs_of(dag: str, runs: Collection[str]) -> dict[str, list[str]]:
    """Return the DAG runs that have worked on these runs of the ledger. One query.

    Not by the interval: a revision has that of the run that it supersedes, and a run by hand may have one of its own.
    """
    if not runs:
        return {}
    results = select(XComModel.run_id, XComModel.value).where(
        XComModel.dag_id == dag, XComModel.task_id == PLAN, XComModel.key == XCOM_RETURN_KEY
    )
    named = or_(*(cast(XComModel.value, String).contains(run, autoescape=True) for run in runs))
    dag_runs: dict[str, list[str]] = {}
    with create_session() as session:
        for row in session.execute(results.where(named).order_by(XComModel.dag_run_id.desc()).limit(_READ)):
            work = XComModel.deserialize_value(row)
            # Not a dict if an XCom backend of the user keeps it elsewhere.
            for run in work.get("runs", ()) if isinstance(work, dict) else ():
                if run in runs and len(known := dag_runs.setdefault(run, [])) < _SHOWN:
                    known.insert(0, row.run_id)
    return dag_runs

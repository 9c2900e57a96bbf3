"""Why a run has failed: what its failed tasks have left behind."""

from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from sqlalchemy import select

from kafka_archiver.orchestration.database import causes


def reasons(dag_id: str, run_id: str) -> list[str]:
    """Of each failed task its cause, and where its log is; two lines."""
    with create_session() as session:
        left = {task: said["cause"] for task, said in causes(dag_id, run_id, session).items()}
        failed = select(TaskInstance).where(
            TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id, TaskInstance.state == "failed"
        )
        return [
            line
            for ti in session.scalars(failed.order_by(TaskInstance.end_date))
            for line in (
                f"    {ti.task_id}: {left.get(ti.task_id, 'it left no cause (killed, or not a task of an archive)')}",
                f"    log: {ti.log_url}",
            )
        ]

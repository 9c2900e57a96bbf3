"""Airflow's failure callbacks: tell the people and programs that `alerts.on_failure` names, once a failure."""

import functools
import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from airflow.sdk import Connection
from airflow.sdk.log import mask_secret

from kafka_archiver.config import Archive
from kafka_archiver.errors import ConfigError, TransientError
from kafka_archiver.orchestration.alerts.alert import Alert, alert_of
from kafka_archiver.orchestration.connections import Wanted, find

log = logging.getLogger(__name__)
HTTP_SECONDS = 20
# The XCom with which a failed attempt notes that it has told everybody.
TOLD = "alerted"


class FailureAlert:
    """Tells of tasks that have failed for good: no retry follows.

    Airflow calls a task's callback in the task's own process, which is where the error is known; when that process was
    killed, nobody calls it. So the DAG run's callback, called in the DAG processor, tells of what was not told.

    :param archives: whether the DAG is the one that archives, or the one that audits.
    """

    def __init__(self, archive: Archive, archives: bool = True) -> None:
        self._archive, self._archives = archive, archives

    def task_failed(self, context: Mapping[str, Any]) -> None:
        """The callback of each task."""
        if "exception" not in context:
            # Called in the DAG processor, since the task's machine stopped reporting: `run_failed` follows.
            return
        self._tell(context)
        ti = context["ti"]
        ti.xcom_push(TOLD, ti.try_number)

    def run_failed(self, context: Mapping[str, Any]) -> None:
        """The callback of the DAG. Airflow's context has the task that failed last."""
        ti = context.get("ti")
        if ti is not None and ti.xcom_pull(task_ids=ti.task_id, key=TOLD, map_indexes=-1) != ti.try_number:
            self._tell(context)

    # The providers' notifiers would render the message as a template; what failed may well hold braces.
    def _tell(self, context: Mapping[str, Any]) -> None:
        alert = alert_of(self._archive, context, self._archives)
        for conn_id in self._archive.alerts.on_failure:
            hidden: list[str] = []
            try:
                connection = find(Wanted(conn_id, "alerts.on_failure", ("http", "smtp")))
                hidden = _secret_parts(connection.host or "")
                for part in hidden:
                    mask_secret(part)
                _SENDERS[str(connection.conn_type)](connection, alert)
            except Exception as error:  # noqa: BLE001 - one that is down must hide neither the others nor the failure
                # Airflow masks what is in a task's log, but not the same lines in its executor's.
                text = functools.reduce(lambda said, part: said.replace(part, "***"), hidden, str(error))
                log.error("the alert could not be sent by connection %s: %s: %s", conn_id, type(error).__name__, text)
            else:
                log.info("sent an alert by connection %s (%s)", conn_id, connection.conn_type)


def _secret_parts(address: str) -> list[str]:
    """Whoever knows the address of a webhook may post to it, and errors repeat it. Also as it is sent."""
    parts = urlsplit(address)
    found = [part for part in (parts.path.strip("/"), parts.query, parts.password) if part]
    return [*found, *(quote(part, safe="!#$%&'()*+,/:;=?@[]~") for part in found)]


# The hooks are imported when there is something to send: a quarter of a CPU second that no parsing should pay.
def _post(connection: Connection, alert: Alert) -> None:
    from airflow.providers.http.hooks.http import HttpHook

    hook = HttpHook(http_conn_id=connection.conn_id)
    # Without it a server that accepts and says nothing would hold the task for ever.
    timeout = connection.extra_dejson.get("timeout", HTTP_SECONDS)
    # Not by the hook's own `run`, which logs the address when nobody answers there.
    answer = hook.get_conn().post(hook.url_from_endpoint(None), json=alert.document(), timeout=timeout)
    if not answer.ok:
        raise TransientError(f"HTTP {answer.status_code} {answer.reason}")


def _mail(connection: Connection, alert: Alert) -> None:
    from airflow.providers.smtp.hooks.smtp import SmtpHook

    recipients = connection.extra_dejson.get("to_email")
    if not recipients:
        raise ConfigError(
            f"Airflow connection {connection.conn_id!r} (alerts.on_failure) says to nobody; expected `to_email` in "
            'its extra, as in {"from_email": "airflow@example.com", "to_email": "on-call@example.com"}'
        )
    with SmtpHook(smtp_conn_id=connection.conn_id) as hook:
        hook.send_email_smtp(to=recipients, subject=alert.title, html_content=alert.as_html())


_SENDERS = {"http": _post, "smtp": _mail}

"""Airflow's failure callbacks: send one alert for each failure to the connections in `alerts.on_failure`."""

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
# The XCom with the attempt whose alert was sent.
TOLD = "alerted"


class FailureAlert:
    """Sends alerts about tasks that have failed for good: no retry follows.

    Airflow calls a task's callback in the task's own process, which knows the error. If that process was killed, the
    callback is not called. So the DAG run's callback, in the DAG processor, sends the alerts that were not sent.

    :param archives: whether the DAG archives (True) or audits (False).
    """

    def __init__(self, archive: Archive, archives: bool = True) -> None:
        self._archive, self._archives = archive, archives

    def task_failed(self, context: Mapping[str, Any]) -> None:
        """The callback of each task."""
        if "exception" not in context:
            # In the DAG processor, because the task's machine stopped reporting: `run_failed` follows.
            return
        self._tell(context)
        ti = context["ti"]
        ti.xcom_push(TOLD, ti.try_number)

    def run_failed(self, context: Mapping[str, Any]) -> None:
        """The callback of the DAG. Airflow's context has the task that failed last."""
        ti = context.get("ti")
        if ti is not None and ti.xcom_pull(task_ids=ti.task_id, key=TOLD, map_indexes=-1) != ti.try_number:
            self._tell(context)

    # Not by the providers' notifiers: they render the message as a template, and an error may hold braces.
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
            except Exception as error:  # noqa: BLE001 - a receiver that is down must not stop the other alerts
                # Airflow masks secrets in a task's log, but not in the executor's copy of it.
                text = functools.reduce(lambda said, part: said.replace(part, "***"), hidden, str(error))
                log.error("the alert could not be sent by connection %s: %s: %s", conn_id, type(error).__name__, text)
            else:
                log.info("sent an alert by connection %s (%s)", conn_id, connection.conn_type)


def _secret_parts(address: str) -> list[str]:
    """The secret parts of a webhook's address, plain and URL-quoted: errors repeat the address."""
    parts = urlsplit(address)
    found = [part for part in (parts.path.strip("/"), parts.query, parts.password) if part]
    return [*found, *(quote(part, safe="!#$%&'()*+,/:;=?@[]~") for part in found)]


# Hooks are imported late: the import takes a quarter of a CPU second, which DAG parsing must not pay.
def _post(connection: Connection, alert: Alert) -> None:
    from airflow.providers.http.hooks.http import HttpHook

    hook = HttpHook(http_conn_id=connection.conn_id)
    # Without a timeout, a server that accepts and does not answer would hold the task for ever.
    timeout = connection.extra_dejson.get("timeout", HTTP_SECONDS)
    # Not the hook's own `run`: it logs the address if the server does not answer.
    answer = hook.get_conn().post(hook.url_from_endpoint(None), json=alert.document(), timeout=timeout)
    if not answer.ok:
        raise TransientError(f"HTTP {answer.status_code} {answer.reason}")


def _mail(connection: Connection, alert: Alert) -> None:
    from airflow.providers.smtp.hooks.smtp import SmtpHook

    recipients = connection.extra_dejson.get("to_email")
    if not recipients:
        raise ConfigError(
            f"Airflow connection {connection.conn_id!r} (alerts.on_failure) names no recipient; expected `to_email` in "
            'its extra, as in {"from_email": "airflow@example.com", "to_email": "on-call@example.com"}'
        )
    with SmtpHook(smtp_conn_id=connection.conn_id) as hook:
        hook.send_email_smtp(to=recipients, subject=alert.title, html_content=alert.as_html())


_SENDERS = {"http": _post, "smtp": _mail}

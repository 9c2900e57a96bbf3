"""Report the incidents of one archive to its receivers: one message when something goes wrong, and one when it is over.

Airflow's runs alone do not show which alerts were sent: a run triggered by hand has no date, so no run finds it as its
predecessor. So the open incidents of an archive are an Airflow variable, which tasks and callbacks can read and write.
It exists only while there are some. Without it, an alert is sent again.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Variable

from kafka_archiver.config.alerts import Alerts
from kafka_archiver.orchestration.alerts.message import Kind, Message, State
from kafka_archiver.orchestration.alerts.send import send_all
from kafka_archiver.orchestration.dag_run.addresses import page_of
from kafka_archiver.values.documents import isoformat


@dataclass(frozen=True, slots=True)
class Incident:
    """An open incident. `key`: the same while nothing has changed. `since`, `cause`: when it began, for what reason.

    `untold`: the alert that no receiver took, as `Message.stored` has it; null if one did.
    """

    key: str
    since: str
    cause: str
    untold: dict[str, Any] | None = None


def state_to_report(before: Incident | None, key: str | None) -> State | None:
    """Return the state of an incident that its alert reports; None: there is nothing to report.

    :param key: of the present state; None: nothing is wrong.
    """
    if key is None:
        return "over" if before else None
    if before is None or (before.untold and before.key == key):
        return "begins"
    return None if before.key == key else "changes"


class Incidents:
    """The open incidents of archives, in variables of Airflow.

    A failure here is logged: an alert that is sent twice is better than none.
    """

    def read(self, archive: str) -> dict[str, Incident]:
        """Return the open incidents by kind."""
        try:
            stored: dict[str, Any] = Variable.get(_name(archive), default=None, deserialize_json=True) or {}
            return {kind: Incident(**incident) for kind, incident in stored.items()}
        except Exception as error:  # noqa: BLE001 - see above
            log.warning("the open incidents of archive %s cannot be read, so all alerts are sent: %s", archive, error)
            return {}

    def write(self, archive: str, incidents: Mapping[str, Incident]) -> None:
        """Replace them."""
        try:
            if incidents:
                value = {kind: asdict(incident) for kind, incident in incidents.items()}
                description = f"Open incidents of archive {archive}. Delete it to get their alerts again."
                Variable.set(_name(archive), value, description=description, serialize_json=True)
            else:
                Variable.delete(_name(archive))
        except Exception as error:  # noqa: BLE001 - see above
            log.warning(
                "the open incidents of archive %s cannot be stored: their alerts are sent again: %s", archive, error
            )


def _name(archive: str) -> str:
    return f"kafka_archiver_incidents_{archive}"


log = logging.getLogger(__name__)
# Seconds for all receivers. The DAG processor parses nothing meanwhile, and kills its child after 50 seconds.
IN_TASK, IN_DAG_PROCESSOR = 90.0, 25.0
MessageOf = Callable[[State, Incident | None], Message]


class IncidentReporter:
    """The alerts of one archive, be its YAML still there or not.

    :param name: the archive's name.
    :ivar seconds: for all receivers of one message.
    """

    def __init__(self, name: str, alerts: Alerts, incidents: Incidents) -> None:
        self._name, self._alerts, self._incidents = name, alerts, incidents
        self.seconds = IN_TASK

    def report(self, kind: Kind, key: str | None, cause: str, message_of: MessageOf) -> None:
        """Send an alert if an incident is new, changes or ends, and note its state; see `incidents.state_to_report`."""
        before = self.open(kind)
        state = state_to_report(before, key)
        if state is None:
            if key is not None:
                log.info("no alert is sent: the same was sent at %s", before.since if before else "")
            return
        message = message_of(state, before)
        sent = self.send(message)
        if not sent:
            log.error("no receiver took the alert; the next run tries again")
        if key is not None:
            since = before.since if before else isoformat(datetime.now(UTC).replace(microsecond=0))
            self._note(kind, Incident(key=key, since=since, cause=cause, untold=None if sent else message.stored()))
        elif sent:
            self._note(kind, None)

    def open(self, kind: Kind) -> Incident | None:
        return self._incidents.read(self._name).get(kind)

    def resend(self, kind: Kind) -> None:
        """Send the alert about an event that no receiver took. Other incidents are judged anew by each run."""
        before = self.open(kind)
        if before and before.untold and self.send(Message.restored(before.untold)):
            self._note(kind, replace(before, untold=None))

    def send(self, message: Message) -> bool:
        """Send a message. Returns whether a receiver took it, or there is none."""
        message = replace(message, page=page_of(self._name))
        return send_all(self._alerts.of(message.receivers), message.receivers, message, self.seconds)

    def _note(self, kind: Kind, incident: Incident | None) -> None:
        # Read again: a run and the watchdog may tell of different incidents at the same time.
        incidents = self._incidents.read(self._name)
        incidents.pop(kind, None)
        if incident is not None:
            incidents[kind] = incident
        self._incidents.write(self._name, incidents)

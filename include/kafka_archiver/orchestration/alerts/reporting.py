"""Report the incidents of one archive to its receivers, each once."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from kafka_archiver.config.alerts import Alerts
from kafka_archiver.orchestration.alerts.incidents import Incident, Incidents, state_to_report
from kafka_archiver.orchestration.alerts.message import Kind, Message, State
from kafka_archiver.orchestration.alerts.send import send_all
from kafka_archiver.orchestration.dag_run.addresses import page_of
from kafka_archiver.values.documents import isoformat

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
        """Return the open incident of this kind."""
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

"""One message when something goes wrong, and one when it is over.

Airflow's runs alone do not show which alerts were sent: a run triggered by hand has no date, so no run finds it as its
predecessor. So the open incidents of an archive are an Airflow variable, which tasks and callbacks can read and write.
It exists only while there are some. Without it, an alert is sent again.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from airflow.sdk import Variable

from kafka_archiver.orchestration.alerts.message import State

log = logging.getLogger(__name__)


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


class Incidents(Protocol):
    """Where the open incidents of an archive are."""

    def read(self, archive: str) -> dict[str, Incident]:
        """Return the open incidents by kind."""

    def write(self, archive: str, incidents: Mapping[str, Incident]) -> None:
        """Replace them."""


class InVariables:
    """In variables of Airflow. A failure here is logged: an alert that is sent twice is better than none."""

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

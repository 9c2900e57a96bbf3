"""`alerts`: who is told of what."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Self

from pydantic import Discriminator, Field, Tag, model_validator

from kafka_archiver.config.properties import ConnectionId, Options
from kafka_archiver.config.section import Section
from kafka_archiver.config.times import span

# Hours close hourly, so the last closed hour is often that old.
_HOUR = timedelta(hours=1)
DEFAULT = "ARCHIVER_WATCHDOG_ALERTS"


class Notifier(Section):
    """A notifier of Airflow that a connection's type alone does not name.

    `connection`: of a known type; its notifier takes `options` besides. `notifier`: the class of any other, with its
    arguments in `options`; in these, {title}, {text} and {link} stand for the alert's.
    """

    connection: ConnectionId | None = None
    notifier: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")] | None = None
    options: Options = Field(default={})

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.connection is None) == (self.notifier is None):
            raise ValueError("either `connection` or `notifier`")
        return self


Receiver = Annotated[
    Annotated[ConnectionId, Tag("[connection]")] | Annotated[Notifier, Tag("[notifier]")],
    Discriminator(lambda value: "[connection]" if isinstance(value, str) else "[notifier]"),
]
Receivers = tuple[Receiver, ...]


class Alerts(Section):
    """The receivers of alerts: ids of Airflow connections, or notifiers.

    Nothing is repeated by time: an incident is reported when it begins or changes, and its end.
    """

    on_failure: Receivers = ()
    on_retry: Receivers = ()
    on_recovery: Receivers | None = None
    on_lag: Receivers | None = None
    on_late_hour: Receivers | None = None
    on_loss: Receivers | None = None
    on_audit: Receivers | None = None
    max_lag_records: Annotated[int, Field(ge=0)] | None = None
    max_age: Annotated[
        timedelta | None,
        *span("expected a time of more than an hour, like 90m, 2h or 1d", least=_HOUR + timedelta(seconds=1)),
    ] = None

    @model_validator(mode="after")
    def _has_receivers(self) -> Self:
        for limit, receivers in (("max_lag_records", "on_lag"), ("max_age", "on_late_hour")):
            if getattr(self, limit) is not None and not self.of(receivers):
                raise ValueError(f"receivers in `on_failure` or `{receivers}` for `{limit}`")
        return self

    def of(self, key: str) -> Receivers:
        """The receivers of a kind of alert, by its key here."""
        receivers: Receivers | None = getattr(self, key)
        return self.on_failure if receivers is None else receivers

    @property
    def all(self) -> tuple[tuple[str, Receiver], ...]:
        """Every receiver once, after the first key that names it."""
        receivers: list[tuple[str, Receiver]] = []
        for key in (name for name in type(self).model_fields if name.startswith("on_")):
            receivers += [
                (key, receiver) for receiver in self.of(key) if receiver not in (known for _, known in receivers)
            ]
        return tuple(receivers)


def default_alerts(environ: Mapping[str, str]) -> Alerts:
    """Return whom the watchdog tells of archives that name nobody: ARCHIVER_WATCHDOG_ALERTS, ids of connections."""
    return Alerts(on_failure=tuple(filter(None, re.split(r"[,\s]+", environ.get(DEFAULT, "")))))

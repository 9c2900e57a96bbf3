"""An alert as a value: its kind, its receivers, its form as mail, chat message and log line. Pure.

The sentences of its title, which is the subject of a mail, and of the next steps: `state_texts` and `failed_run`.
"""

import html
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from kafka_archiver.messages.actions import Action, from_dicts, to_dicts, words
from kafka_archiver.messages.foreign_text import without_markup

# failure, backfill, asked: a run of the DAG failed: of the schedule or triggered, of a backfill, or one that was asked
# for a rebuild, a replay or a repair. audit: the audit found damage. stop: it found that the next run will stop. check:
# the DAG that audits failed for another reason. The watchdog's: paused: the DAG is paused, and records wait. unaudited:
# the audits do not run. wrong_file, gone: the archive's YAML file is wrong, or was deleted.
Kind = Literal[
    "failure", "backfill", "asked", "retry", "lag", "late_hour", "loss", "audit", "stop", "check",
    "paused", "unaudited", "wrong_file", "gone",
]  # fmt: skip
# changes: the incident goes on, for another reason. event: it is not an incident, so it has no end.
State = Literal["begins", "changes", "over", "event"]
# The section of docs/runbook/alerts.md, and the list of receivers in `alerts`. A retry has no end; a failure's is
# recovery.
ROUTES: dict[Kind, tuple[str, str]] = {
    "failure": ("alert-a-run-failed", "on_failure"),
    "backfill": ("alert-a-run-failed", "on_failure"),
    "asked": ("alert-a-run-failed", "on_failure"),
    "retry": ("alert-a-task-is-tried-again", "on_retry"),
    "lag": ("alert-too-many-records-wait", "on_lag"),
    "late_hour": ("alert-an-hour-is-late", "on_late_hour"),
    "loss": ("alert-records-were-lost", "on_loss"),
    "audit": ("alert-the-audit-found-damage", "on_audit"),
    "stop": ("alert-the-next-run-will-stop", "on_audit"),
    "check": ("alert-the-audit-could-not-run", "on_failure"),
    "paused": ("alert-a-paused-dag-and-records-that-wait", "on_failure"),
    "unaudited": ("alert-no-audit", "on_audit"),
    "wrong_file": ("alert-a-yaml-file-is-wrong", "on_failure"),
    "gone": ("alert-an-archive-is-gone", "on_failure"),
}
GUIDE = "docs/runbook/alerts.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One alert. `title`: the trouble, and its hours, in one line. `cause`: one line; empty if it says nothing more.

    `bad`: how bad it is, a line each. `do`: the next steps, exact commands where there are some. `link`: an address in
    Airflow's UI; empty if there is none. `page`: the archive's page. `fields`: for programs, with JSON's types.
    """

    kind: Kind
    state: State
    archive: str
    title: str
    cause: str = ""
    bad: tuple[str, ...] = ()
    do: tuple[Action, ...] = ()
    link: str = ""
    page: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def receivers(self) -> str:
        """The key of `alerts` with its receivers."""
        receivers = ROUTES[self.kind][1]
        return "on_recovery" if self.state == "over" and receivers == "on_failure" else receivers

    @property
    def runbook(self) -> str:
        """Where the guide says what to do."""
        return f"{GUIDE}#{ROUTES[self.kind][0]}"

    @property
    def lines(self) -> list[str]:
        """The text below the title. What others wrote in it is only text, also for a chat service."""
        return [*map(without_markup, self._words), *self._places]

    @property
    def _words(self) -> list[str]:
        """The lines that may quote others."""
        return list(filter(None, (self.cause, *self.bad)))

    @property
    def _places(self) -> list[str]:
        """The lines about what to do, and where to look."""
        return [
            *(f"What to do: {step}" for step in self.do),
            *([f"Log: {self.link}"] if self.link else []),
            *([f"Page: {self.page}"] if self.page else []),
            f"Guide: {self.runbook}",
        ]

    @property
    def text(self) -> str:
        """The whole message."""
        return "\n".join([without_markup(self.title), *self.lines])

    def stored(self) -> dict[str, Any]:
        """Return the message as JSON, for `restored`."""
        return {**asdict(self), "bad": list(self.bad), "do": to_dicts(self.do), "fields": dict(self.fields)}

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> Self:
        """Return the message that `stored` has made. A message of an earlier release has its next steps as text."""
        steps = stored.get("do", ())
        lines = tuple(words(step) for step in steps if isinstance(step, str))
        return cls(**{**stored, "bad": tuple(stored.get("bad", ())), "do": lines or from_dicts(steps)})

    def document(self) -> dict[str, Any]:
        """Return the message as JSON; chat services show the `text` of a webhook's document."""
        return {
            "text": self.text,
            "archive": self.archive,
            "kind": self.kind,
            "state": self.state,
            "cause": self.cause,
            "next": list(map(str, self.do)),
            "guide": self.runbook,
            "log_url": self.link,
            "page_url": self.page,
            **self.fields,
        }

    def as_html(self) -> str:
        """Return the message as the body of an email."""
        return "".join(f"<p>{html.escape(line)}</p>" for line in (self.title, *self._words, *self._places))


def of_incident(
    kind: Kind,
    state: State,
    archive: str,
    titles: tuple[str, str],
    bad: Iterable[str],
    do: Iterable[Action],
    link: str,
    cause: str = "",
    fields: Mapping[str, Any] | None = None,
) -> Message:
    """Return the alert about an incident; one about its end has neither cause nor steps.

    :param titles: behind the archive's name: of the incident, and of its end.
    """
    ends = state == "over"
    return Message(
        kind=kind,
        state=state,
        archive=archive,
        title=f"Archive {archive}: {titles[ends]}",
        cause="" if ends else cause,
        bad=tuple(bad),
        do=() if ends else tuple(do),
        link=link,
        fields=fields or {},
    )

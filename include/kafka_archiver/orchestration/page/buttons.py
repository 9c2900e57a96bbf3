"""The buttons beside actions: each posts what starts the same as its command. Pure.

Who states a fact chooses its actions: findings, and `views` for an hour.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from kafka_archiver.messages.actions import Action
from kafka_archiver.messages.advice import audit_dag_id, dag_id
from kafka_archiver.messages.policies import POLICIES, deeds
from kafka_archiver.messages.wording import count

# The label that accepts a finding, by the kind in its name; of others the name.
_ACCEPT = {
    "lost-offsets": "Accept this loss",
    "dead-letters": "Accept these dead letters",
    "never-audited": "Accept that there was no audit",
}


class Button(NamedTuple):
    """A form of one button: the action of the page, and its fields."""

    action: str
    label: str
    fields: tuple[tuple[str, str], ...] = ()

    @property
    def dangerous(self) -> bool:
        """True if it replaces objects or decides something for ever; the page asks before it starts."""
        policies = ((name.removeprefix("policy."), value) for name, value in self.fields if name.startswith("policy."))
        replaces = any(name == "rebuild" for name, _ in self.fields)
        return replaces or any(POLICIES[policy].choice(choice).is_for_ever for policy, choice in policies)


class Step(NamedTuple):
    """An action: its command, which may be empty, the words before it, and the button that does the same, if any."""

    command: str
    words: str = ""
    button: Button | None = None


def steps_of(archive: str, actions: Iterable[Action], damaged: Collection[str] = ()) -> list[Step]:
    """Return actions with their buttons.

    :param damaged: the runs whose objects the last audit found missing or damaged.
    """
    return [Step(action.command, action.words, button_of(archive, action, damaged)) for action in actions]


def buttons_of(archive: str, actions: Iterable[Action]) -> list[Step]:
    """Return those of these actions that the page has a button for."""
    return [step for step in steps_of(archive, actions) if step.button]


def button_of(archive: str, action: Action, damaged: Collection[str] = ()) -> Button | None:
    """Return the button of an action; None if the page has none."""
    conf = action.conf
    match action.kind:
        case "look":
            return None
        case "run":
            return _run(conf.get("policies", {}))
        case "fill":
            return Button("fill", "Fill the archive")
        case "rebuild":
            button = _with("run", conf, "rebuild", "Rebuild run {}")
            more = (("fewer", "1"),) if conf.get("fewer") else ()
            return button and button._replace(fields=(*button.fields, *more))
        case "repair":
            runs = tuple(("run", run) for run in damaged)
            return Button("repair", f"Repair {count(len(damaged), 'run')}", runs) if damaged else None
        case "dead-letters":
            return _replay(conf.get("runs", ()))
        case "audit":
            deep = bool(conf.get("deep"))
            return (
                Button("audit", "Audit, reading every object", (("deep", "1"),)) if deep else Button("audit", "Audit")
            )
        case "unpause":
            dags = {dag_id(archive): "unpause", audit_dag_id(archive): "unpause-audit"}
            dag = conf.get("dag")
            return Button(dags[dag], f"Unpause {dag}") if dag in dags else None
        case "acknowledge":
            return _accept(conf)


def _with(field: str, conf: Mapping[str, Any], action: str, label: str) -> Button | None:
    """Return the button of an action with one field; None if the field is missing."""
    value = conf.get(field)
    return Button(action, label.format(value), ((field, value),)) if isinstance(value, str) and value else None


def _accept(conf: Mapping[str, Any]) -> Button | None:
    button = _with("finding", conf, "acknowledge", "Accept {}")
    kind = str(conf.get("finding")).partition(":")[0]
    return button and button._replace(label=_ACCEPT.get(kind, button.label))


def _run(policies: dict[str, str]) -> Button:
    if not policies:
        return Button("run", "Run now")
    chosen = ", ".join(f"{policy}: {choice}" for policy, choice in policies.items())
    fields = tuple((f"policy.{policy}", choice) for policy, choice in policies.items())
    deed = deeds(policies)
    return Button("run", f"{deed} and go on" if deed else f"Run now with {chosen}", fields)


def _replay(runs: Collection[str]) -> Button:
    if not runs:
        return Button("dead-letters", "Replay all dead letters")
    return Button("dead-letters", f"Replay dead letters of {', '.join(runs)}", tuple(("run", run) for run in runs))

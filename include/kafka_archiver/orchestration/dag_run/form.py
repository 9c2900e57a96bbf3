"""The trigger form of an archive's DAG: one field for each thing that a person may set for a single run.

The name of a field is its path: `rebuild.hour` is `hour` of `rebuild`. A run accepts the paths, and also the sections
as JSON, as in `airflow dags trigger --conf '{"policies": {"lost_offsets": "record_loss"}}'`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from airflow.sdk import Param

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.policies import POLICIES

POLICY_SECTION = "policies"
# The sections of a run that archives nothing new.
INSTEAD = ("fill", "rebuild", "dead_letters", "repair")
SECTIONS = (POLICY_SECTION, *INSTEAD)
_HOUR = {"type": ["null", "string"], "format": "date-time"}
_RUNS = {"type": ["null", "array"], "items": {"type": "string"}}
_RUN = "as `airflow archive runs` shows it: 20261121T050000Z"
# Path, default, schema, title, description; the policies are added from their own model.
_FIELDS: tuple[tuple[str, Any, dict[str, Any], str, str], ...] = (
    ("fill.all", False, {"type": "boolean"}, "Fill the archive", "Archive what Kafka still has of all that "
     "earlier runs and backfills have left out, up to as many records as one run takes."),
    ("fill.from", None, _HOUR, "Fill the archive from", "The same for what may be of this hour or a later one."),
    ("rebuild.hour", None, _HOUR, "Rebuild an hour", "Read all runs that have records of this hour from Kafka again, "
     "with today's settings, and replace their objects. Nothing new is archived."),
    ("rebuild.run", None, {"type": ["null", "string"]}, "Rebuild a run", f"The same for one run, {_RUN}."),
    ("rebuild.keep", False, {"type": "boolean"}, "Keep the replaced objects", "They stay in the store; no proof names "
     "them."),
    ("rebuild.fewer", False, {"type": "boolean"}, "Also with fewer records", "Replace them also if fewer records are "
     "archived then than now, because today's settings filter or reject some."),
    ("dead_letters.runs", None, _RUNS, "Replay dead letters of runs", "Archive the dead letters of these runs with "
     f"today's settings. One run in a line, {_RUN}."),
    ("dead_letters.from", None, _HOUR, "Replay dead letters from", "The first hour; give the last hour too."),
    ("dead_letters.to", None, _HOUR, "Replay dead letters to", "The last hour, included."),
    ("dead_letters.all", False, {"type": "boolean"}, "Replay all dead letters", "All that the archive has."),
    ("repair.runs", None, _RUNS, "Repair runs", "Write the missing and damaged objects of these runs again. "
     "`airflow archive repair` finds them and sets this."),
)  # fmt: skip
_TITLES = {"fill": "Fill", "rebuild": "Rebuild", "dead_letters": "Dead letters", "repair": "Repair"}


PATHS = ("max_records", *(f"{POLICY_SECTION}.{policy}" for policy in POLICIES), *(path for path, *_ in _FIELDS))
# All keys of a run's conf.
KEYS = frozenset({*PATHS, *SECTIONS})


def params(archive: Archive) -> dict[str, Param]:
    """Return the parameters of an archive's DAG, in the order of the form."""
    most = Param(
        archive.source.max_records_per_run,
        type="integer",
        minimum=1,
        title="Records at most",
        description="The most records that this run takes; the next run continues where this run stops. A higher "
        "number catches up faster after an outage. A backfill takes all of its interval.",
    )
    policies = {f"{POLICY_SECTION}.{policy}": _policy(archive, policy) for policy in POLICIES}
    fields = {
        path: Param(default, **schema, title=title, description=text, section=_TITLES[path.partition(".")[0]])
        for path, default, schema, title, text in _FIELDS
    }
    return {"max_records": most, **policies, **fields}


def _policy(archive: Archive, policy: str) -> Param:
    standing = getattr(archive.policies, policy)
    return Param(
        None,
        type=["null", "string"],
        enum=[None, *POLICIES[policy].names],
        values_display={"null": f"as in the YAML ({standing})"},
        title=policy.replace("_", " ").capitalize(),
        description=f"What this run does if {POLICIES[policy].when}. Without a choice: `{standing}`, as the YAML says.",
        section="Policies of this run",
    )


def request_of(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a run's conf or parameters with one value a section: None, or the request; `policies` is a mapping.

    :raises ConfigError: a section is of another type, or something is given twice.
    """
    conf = dict(params or {})
    sections = {name: _section(name, conf, dict(_fields_of(name, conf))) for name in SECTIONS}
    if len(several := [f"`{name}`" for name in INSTEAD if sections[name]]) > 1:
        raise ConfigError(f"the run's conf has {' and '.join(several)}; expected one of them: a run does one thing")
    return {
        **{key: conf[key] for key in ("max_records",) if key in conf},
        **sections,
        POLICY_SECTION: sections[POLICY_SECTION] or {},
    }


def _fields_of(section: str, conf: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a section that are not empty."""
    for path in PATHS:
        name, _, key = path.partition(".")
        if name == section and conf.get(path) not in (None, False, "", [], ()):
            yield key, conf[path]


def _section(name: str, conf: Mapping[str, Any], fields: dict[str, Any]) -> Any:
    whole = conf.get(name)
    expected: type = list if name == "repair" else Mapping
    if whole and not isinstance(whole, expected):
        kind = "a list" if expected is list else "a mapping"
        raise ConfigError(f"in the run's `{name}`: expected {kind}, found {whole!r}")
    if whole and fields:
        raise ConfigError(
            f"the run's conf has `{name}` and {', '.join(f'`{name}.{key}`' for key in fields)}; expected one of them"
        )
    if whole or not fields:
        return whole or None
    if name == "repair":
        return fields["runs"]
    if name == "dead_letters" and {"from", "to"} & set(fields):
        if {"from", "to"} - set(fields):
            raise ConfigError("in the run's `dead_letters`: expected both `from` and `to`, the first and the last hour")
        fields["hours"] = [fields.pop("from"), fields.pop("to")]
    return fields

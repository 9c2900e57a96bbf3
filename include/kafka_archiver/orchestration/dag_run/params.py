"""The parameters of a single DAG run, from the trigger form or `airflow dags trigger --conf`, checked."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Self

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.policies import POLICIES
from kafka_archiver.model.object_keys import run_name, split_run
from kafka_archiver.orchestration.dag_run.form import INSTEAD, KEYS, POLICY_SECTION, request_of
from kafka_archiver.values.intervals import run_id


def with_params(archive: Archive, params: Mapping[str, Any]) -> Archive:
    """Return the archive with the parameters of this DAG run.

    :raises ConfigError: there is no such policy or choice.
    """
    request = request_of(params)
    source = archive.source.model_copy(update={"max_records_per_run": request["max_records"]})
    return archive.model_copy(update={"source": source}).choosing(request["policies"])


def takes_new(conf: Mapping[str, Any] | None) -> bool:
    """Return True if a DAG run with this conf archives its interval; others work on earlier runs, or are refused."""
    try:
        request = request_of(conf)
    except ConfigError:
        return False
    chosen = request[POLICY_SECTION].items()
    are_choices = all(policy in POLICIES and choice in POLICIES[policy].names for policy, choice in chosen)
    return set(conf or {}) <= KEYS and are_choices and not any(map(request.get, INSTEAD))


def checked_run(run: str, param: str = "repair") -> str:
    """Return the name of a run, as the ledger has it.

    :param param: the DAG's parameter that names it.
    :raises ConfigError: it is not a run's name.
    """
    try:
        start, revision = split_run(str(run))
        return run_name(run_id(start), revision)
    except ValueError:
        raise ConfigError(
            f"in the run's `{param}`: expected names of runs as `airflow archive runs` shows them, such as "
            f"20261121T050000Z, found {run!r}"
        ) from None


def require_known(conf: Mapping[str, Any] | None, known: Collection[str]) -> None:
    """Refuse unknown keys of a DAG run's conf; Airflow would accept and ignore them.

    :param known: the names of the DAG's parameters.
    :raises ConfigError: `conf` has other keys.
    """
    lowered = {name.lower(): name for name in known}
    unknown = []
    for key in sorted(set(conf or {}) - set(known)):
        near = get_close_matches(key.lower(), lowered, n=1)
        unknown.append(f"`{key}`" + (f" (did you mean `{lowered[near[0]]}`?)" if near else ""))
    if unknown:
        wrong = "is not a key of this DAG run's conf" if len(unknown) == 1 else "are not keys of this DAG run's conf"
        raise ConfigError(
            f"{', '.join(unknown)} {wrong}; expected {', '.join(sorted(known))}. Nothing was planned; trigger the DAG "
            "again with the right key"
        )


@dataclass(frozen=True, slots=True)
class Rebuild:
    """The request of the parameter `rebuild`: an hour (its start), or else a run."""

    hour: datetime | None
    run: str
    keep: bool
    fewer: bool = False

    @classmethod
    def of(cls, conf: Mapping[str, Any]) -> Self:
        """Check the parameter.

        :raises ConfigError: it does not name either an hour or a run, or has another key.
        """
        try:
            if set(conf) - {"hour", "run", "keep", "fewer"} or ("hour" in conf) == ("run" in conf):
                raise ValueError("give either `hour` or `run`, and `keep` and `fewer` if needed")
            keep, fewer = conf.get("keep", False), conf.get("fewer", False)
            if not isinstance(keep, bool) or not isinstance(fewer, bool):
                raise ValueError("`keep` and `fewer` must be true or false")
            if "run" in conf:
                start, revision = split_run(str(conf["run"]))
                return cls(None, run_name(run_id(start), revision), keep, fewer)
            return cls(utc(str(conf["hour"])), "", keep, fewer)
        except (ValueError, OverflowError) as error:
            raise ConfigError(
                'in the run\'s `rebuild`: expected {"hour": "2026-11-21T05:00:00Z"} or {"run": "20261121T050000Z"}, '
                f"found {dict(conf)} ({error})"
            ) from None


def fill_start(conf: Mapping[str, Any]) -> datetime | None:
    """Return the hour from which the parameter `fill` asks; None for all.

    :raises ConfigError: it asks for neither, or for something else.
    """
    match dict(conf):
        case {"all": True, **more} if not more:
            return None
        case {"from": first, **more} if not more:
            with suppress(ValueError, OverflowError):
                return utc(str(first))
    raise ConfigError(
        f'in the run\'s `fill`: expected {{"all": true}} or {{"from": "2026-11-21T05:00:00Z"}}, found {dict(conf)}'
    )


def selected_letters(conf: Mapping[str, Any]) -> list[str] | tuple[datetime, datetime] | None:
    """Return the selection of the parameter `dead_letters`: runs, the first and the last hour, or None for all.

    :raises ConfigError: it names none of these, or several.
    """
    match dict(conf):
        case {"all": True, **more} if not more:
            return None
        case {"runs": [*runs], **more} if runs and not more:
            return [checked_run(run, "dead_letters") for run in runs]
        case {"hours": [first, last], **more} if not more:
            with suppress(ValueError, OverflowError):
                return utc(str(first)), utc(str(last))
    raise ConfigError(
        'in the run\'s `dead_letters`: expected {"runs": ["20261121T050000Z"]}, {"hours": ["2026-11-21T05:00:00Z", '
        f'"2026-11-21T07:00:00Z"]}} or {{"all": true}}, found {dict(conf)}'
    )


def utc(text: str) -> datetime:
    """Read a time; without a zone it is UTC.

    :raises ValueError: it is not a time of RFC 3339.
    """
    moment = datetime.fromisoformat(text)
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as error:
        raise ValueError("no such time in UTC") from error

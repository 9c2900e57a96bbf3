"""The YAML of an archive. Every key but `archive`, `source.topics` and `store.url` has a default.

:func:`load_archive` reads one file, :func:`load_archives` a folder; both raise
:class:`~kafka_archiver.errors.ConfigError` naming file, key, what was expected and what was found.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from kafka_archiver.documents import UtcTime
from kafka_archiver.errors import ConfigError
from kafka_archiver.intervals import duration
from kafka_archiver.plan import BadRecord, Settings
from kafka_archiver.properties import (
    SECRET,
    ConnectionId,
    ConnectionOrProperties,
    Properties,
    kubernetes_name,
    no_secret_arguments,
    store_url,
    without_credentials,
)
from kafka_archiver.secrets import GIVEN, key_name

# Known to the design, not to this version: an error that says so beats "unknown key".
PLANNED = {
    "transform", "schema_evolution", "alerts.max_age", "alerts.max_lag_records",
}  # fmt: skip


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Without the properties that it is given: some are secrets."""
        for name, value in super().__repr_args__():
            yield name, GIVEN if isinstance(value, dict) else value


class Decode(_Section):
    """How the bytes of a key or value are read."""

    decode: Literal["bytes"] = "bytes"


class ValueDecode(_Section):
    """How the bytes of a value are read; `json` makes a value that is not one JSON document a bad record."""

    decode: Literal["bytes", "json"] = "bytes"


class Source(_Section):
    """What is archived, and how it is read."""

    kafka: ConnectionOrProperties = "kafka_default"
    topics: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    pattern: str | None = None
    group: str | None = None
    start: Literal["earliest", "latest"] | UtcTime = "earliest"
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    reader: Literal["auto", "spark", "native"] = "auto"
    # Seconds that planning waits for open transactions.
    settle: Annotated[float, Field(ge=0, le=3600)] = 30
    max_records_per_run: Annotated[int, Field(gt=0)] = 50_000_000
    max_value_bytes: Annotated[int, Field(gt=0)] | None = None
    key: Decode = Decode()
    value: ValueDecode = ValueDecode()
    registry: Annotated[
        ConnectionOrProperties | None, BeforeValidator(without_credentials("url", "https://registry:8081"))
    ] = None

    @property
    def wanted(self) -> tuple[str, ...] | re.Pattern[str]:
        """The topics' names, or the pattern that whole names have to match."""
        return re.compile(self.pattern) if self.pattern is not None else self.topics or ()

    @model_validator(mode="after")
    def _one_way_to_name_topics(self) -> Self:
        if (self.topics is None) == (self.pattern is None):
            raise ValueError("expected exactly one of `topics` (a list of names) and `pattern` (a regular expression)")
        if self.topics and len(set(self.topics)) != len(self.topics):
            raise ValueError("each topic once in `topics`")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise ValueError(f"a regular expression in `pattern` ({error})") from error
        return self


def _disorder(value: Any) -> timedelta | None:
    expected = "expected a time of a second to a week, like 30s, 5m or 1h"
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(expected)
    try:
        found = duration(value)
    except ValueError:
        raise ValueError(expected) from None
    if not timedelta(seconds=1) <= found <= timedelta(weeks=1):
        raise ValueError(expected)
    return found


class Timestamp(_Section):
    """Which time files a record.

    `max_disorder`: no record of a partition is that much older than an earlier one, which lets a backfill prove its
    hours alone.
    """

    from_: Annotated[Literal["record"], Field(alias="from")] = "record"
    max_disorder: Annotated[timedelta | None, BeforeValidator(_disorder)] = None


class StoreSection(_Section):
    """Where and how objects are written."""

    url: Annotated[str, BeforeValidator(store_url)]
    aws: Annotated[ConnectionOrProperties, BeforeValidator(without_credentials("endpoint_url", "http://host:port"))] = (
        "aws_default"
    )
    layout: Literal["hourly"] = "hourly"
    format: str = "jsonl"
    content: Literal["value", "record"] = "value"
    codec: str | None = None
    chunk_records: Annotated[int, Field(gt=0, le=100_000_000)] = 1_000_000
    part_bytes: Annotated[int, Field(ge=5 << 20, le=1 << 30)] = 8 << 20
    encryption: Literal["none"] = "none"


class Policies(_Section):
    """What to do when the brokers' state is strange."""

    lost_offsets: Literal["fail", "record_loss"] = "fail"
    recreated_topic: Literal["fail", "new_generation"] = "fail"
    missing_group: Literal["resume_from_ledger", "fail"] = "resume_from_ledger"
    moved_group: Literal["fail", "follow_ledger", "new_generation"] = "fail"
    bad_record: BadRecord = "fail"
    null_value: Literal["archive", "skip"] = "archive"


class Alerts(_Section):
    """Whom to tell: names of Airflow connections (types http and smtp)."""

    on_failure: tuple[ConnectionId, ...] = ()


class Spark(_Section):
    """How the job is submitted.

    `memory_bytes` bounds what one task holds back before it spills to local disk. On Kubernetes, in deploy mode
    `cluster`, the driver has the endpoints from the Secret named `kubernetes_secret`.
    """

    connection: ConnectionId = "spark_default"
    conf: Annotated[Properties, AfterValidator(no_secret_arguments)] = {}
    memory_bytes: Annotated[int, Field(ge=16 << 20)] = 128 << 20
    kubernetes_secret: Annotated[str, BeforeValidator(kubernetes_name)] | None = None


def _schedule(value: Any) -> Any:
    if value is not None and (not isinstance(value, str) or not _fires(value)):
        raise ValueError('expected a cron expression of five fields like "0 * * * *", or "@hourly", or null')
    return value


def _fires(expression: str) -> bool:
    """Whether it is a schedule, and one that comes round: Airflow would stop at the others, for every archive."""
    # R stands for a random value, which would be another at each look; a sixth field for seconds, a seventh for years.
    fields = 1 if expression.startswith("@") else 5
    if not croniter.is_valid(expression) or re.search(r"\bR\b", expression) or len(expression.split()) != fields:
        return False
    try:
        croniter(expression).get_next()
    except CroniterBadDateError:
        return False
    return True


def _timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError('expected the name of a time zone like "UTC" or "Europe/Berlin"') from None
    return name


class Archive(_Section):
    """One archive: its YAML as a value."""

    archive: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=200)]
    description: str = ""
    owner: Annotated[str, Field(min_length=1)] = "airflow"
    # Airflow takes no longer ones.
    tags: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = ()
    schedule: Annotated[str | None, BeforeValidator(_schedule)] = "0 * * * *"
    timezone: Annotated[str, AfterValidator(_timezone)] = "UTC"
    retries: Annotated[int, Field(ge=0)] = 3
    source: Source
    timestamp: Timestamp = Timestamp()
    store: StoreSection
    policies: Policies = Policies()
    alerts: Alerts = Alerts()
    spark: Spark = Spark()

    def choosing(self, policies: Mapping[str, Any]) -> Self:
        """The archive with some policies chosen otherwise, as one DAG run may.

        :raises ConfigError: there is no such policy or choice.
        """
        try:
            chosen = Policies.model_validate({**self.policies.model_dump(), **policies})
        except ValidationError as error:
            wrong = "; ".join(f"in the run's `policies`: {line}" for line in _explain(error))
            raise ConfigError(f"{wrong} (policies: {', '.join(Policies.model_fields)})") from None
        return self.model_copy(update={"policies": chosen})

    @property
    def group(self) -> str:
        """The consumer group whose offsets say how far the archive is."""
        return self.source.group or f"archiver-{self.archive}"

    @property
    def settings(self) -> Settings:
        """What of it a plan freezes."""
        return Settings(
            isolation=self.source.isolation,
            layout=self.store.layout,
            format=self.store.format,
            content=self.store.content,
            codec=self.store.codec or default_codec(self.store.format),
            value_decode=self.source.value.decode,
            null_value=self.policies.null_value,
            max_value_bytes=self.source.max_value_bytes,
            chunk_records=self.store.chunk_records,
            part_bytes=self.store.part_bytes,
        )


def default_codec(format_name: str) -> str:
    """The codec of a format when the YAML names none."""
    return {"parquet": "zstd", "avro": "zstd"}.get(format_name, "gzip")


class _Loader(yaml.SafeLoader):
    """Leaves times as text, and refuses a key that is given twice, which YAML itself would quietly let win."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - overrides the base class's
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise ConfigError(f"line {key_node.start_mark.line + 1}: key `{key_name(key)}` is given twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


def _explain(error: ValidationError) -> Iterator[str]:
    """What is wrong, a line a key."""
    expected: dict[str, list[str]] = {}
    found: dict[str, str] = {}
    for fault in error.errors():
        # pydantic names the branch of a union it tried; a reader of the YAML knows only its keys.
        where = ".".join(key_name(p) for p in fault["loc"] if not _is_branch(str(p)))
        if fault["type"] == "extra_forbidden":
            yield (
                f"`{where}` is part of the design but not of this version; remove it"
                if where in PLANNED
                else f"`{where}` is not a key of an archive; see docs/OPERATING.md for all keys"
            )
        elif fault["type"] == "missing":
            yield f"`{where}` is required"
        else:
            expected.setdefault(where or "archive", []).append(_expectation(fault["type"], fault["msg"]))
            found[where or "archive"] = _found(fault["type"], fault["input"])
    for where, expectations in expected.items():
        yield f"`{where}`: expected {' or '.join(dict.fromkeys(expectations))}{found[where]}"


_PLAIN = {
    "string_type": "text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "datetime_from_date_parsing": "a time like 2026-11-01T00:00:00Z",
    "datetime_parsing": "a time like 2026-11-01T00:00:00Z",
    "datetime_type": "a time like 2026-11-01T00:00:00Z",
}


def _found(kind: str, value: Any) -> str:
    """The end of an error: what was found, or only of what kind it is where it may be a secret."""
    if kind == "value_error" and isinstance(value, dict):
        # Of keys that do not go together, which the message names.
        return ""
    if isinstance(value, bool | int | float | str) and kind not in (SECRET, "model_type"):
        return f"; found {value!r}"
    return f"; found {kind_of(value)}"


def kind_of(value: Any) -> str:
    """What kind of YAML it is, in words."""
    return _KINDS.get(type(value), "something else")


_KINDS = {
    dict: "a mapping",
    list: "a list",
    str: "text that is not shown, since it may hold a secret",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "nothing",
}


def _expectation(kind: str, message: str) -> str:
    message = message.removeprefix("Value error, ").removeprefix("expected ")
    return _PLAIN.get(kind) or message.removeprefix("Input should be ").removeprefix("String should ")


def _is_branch(part: str) -> bool:
    return "[" in part or part in ("str", "datetime")


_QUOTED = re.compile(r"""(['"])(.*?)\1""", re.DOTALL)
# The words and signs of YAML itself.
_OF_YAML = re.compile(r"<[a-z ]+>|[][{},:?-]")


def parse_archive(text: str, file: str) -> Archive:
    """An archive from YAML text.

    :param file: what to call the text in messages.
    :raises ConfigError: it is not YAML, or not an archive.
    """
    try:
        content = yaml.load(text, Loader=_Loader)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    except Exception as error:  # noqa: BLE001 - a value can fail in any way, and one file must not stop the others
        raise ConfigError(f"{file}: not YAML: {_problem(error)}") from None
    if not isinstance(content, dict):
        found = kind_of(content)
        raise ConfigError(f"{file}: expected a mapping with the keys archive, source and store; found {found}")
    try:
        return Archive.model_validate(content)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{file}: {line}" for line in dict.fromkeys(_explain(error)))) from None


def _problem(error: Exception) -> str:
    """Where it is and what it is, without what the error quotes: it may be a password."""
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = getattr(error, "problem", None) or "a value cannot be read"
    return where + _QUOTED.sub(lambda found: found[0] if _OF_YAML.fullmatch(found[2]) else "…", problem)


def load_archive(path: Path) -> Archive:
    """The archive in one YAML file. Raises ConfigError."""
    try:
        return parse_archive(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: cannot be read: it is not UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error


def archive_files(folder: Path) -> list[Path]:
    """The YAML files of a folder of archives, sorted. Raises ConfigError when there is no such folder."""
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: no such folder; set ARCHIVER_CONFIG_DIR to the one with your archives' YAML files"
        )
    return sorted(p for p in folder.iterdir() if p.suffix in (".yaml", ".yml") and not p.name.startswith("."))

"""`source`: what is archived, and how it is read."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from kafka_archiver.config.decoding import DecoderSection, Decoding, HeaderDecoding
from kafka_archiver.config.properties import ConnectionOrProperties, without_credentials
from kafka_archiver.config.section import Section
from kafka_archiver.model.schemas import Unknown
from kafka_archiver.model.settings import Isolation
from kafka_archiver.values.documents import UtcTime

# Where another tool stopped: its consumer group.
GROUP = "group:"
OldGroup = Annotated[str, Field(pattern=rf"^{GROUP}.+$")]
_LEGAL = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")


def is_topic(name: str) -> bool:
    """Return True if Kafka takes a topic of that name."""
    return _LEGAL.fullmatch(name) is not None


def _topic(name: str) -> str:
    if not is_topic(name):
        raise ValueError(
            "expected the name of a topic (1 to 249 letters A-Z a-z, digits, `.`, `_` and `-`, but not `.` or `..`); a "
            "regular expression belongs in `source.pattern`"
        )
    return name


def _expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"expected a regular expression for the whole name of consumer groups ({error})") from error
    return pattern


def _some(topics: tuple[str, ...]) -> tuple[str, ...]:
    if not topics:
        raise ValueError("expected at least one topic")
    return topics


class Source(Section):
    """The topics of an archive, and the way to read them."""

    kafka: ConnectionOrProperties = "kafka_default"
    topics: Annotated[tuple[Annotated[str, AfterValidator(_topic)], ...], AfterValidator(_some)] | None = None
    pattern: str | None = None
    group: Annotated[str, Field(min_length=1, max_length=249)] | None = None
    start: Literal["earliest", "latest"] | UtcTime | OldGroup = "earliest"
    isolation: Isolation = "read_committed"
    reader: Literal["auto", "spark", "native"] = "auto"
    # Seconds that planning waits for open transactions.
    settle: Annotated[float, Field(ge=0, le=3600)] = 30
    # Consumer groups whose committed offsets each plan has, for a restore.
    snapshot_groups: tuple[Annotated[str, AfterValidator(_expression)], ...] = ()
    max_records_per_run: Annotated[int, Field(gt=0)] = 50_000_000
    max_value_bytes: Annotated[int, Field(gt=0)] | None = None
    key: Decoding = Decoding()
    value: Decoding = Decoding()
    headers: dict[str, HeaderDecoding] = Field(default={})
    registry: Annotated[
        ConnectionOrProperties | None, BeforeValidator(without_credentials("url", "https://registry:8081"))
    ] = None

    @property
    def old_group(self) -> str | None:
        """The consumer group whose offsets are the archive's start."""
        is_group = isinstance(self.start, str) and self.start.startswith(GROUP)
        return str(self.start).removeprefix(GROUP) if is_group else None

    @property
    def selection(self) -> tuple[str, ...] | re.Pattern[str]:
        """The topics' names, or the pattern that whole names have to match."""
        return re.compile(self.pattern) if self.pattern is not None else self.topics or ()

    def selects(self, topic: str) -> bool:
        """Return True if the archive reads a topic of this name."""
        selection = self.selection
        return bool(selection.fullmatch(topic)) if isinstance(selection, re.Pattern) else topic in selection

    @property
    def decoded(self) -> dict[Literal["key", "value"], Decoding]:
        return {"key": self.key, "value": self.value}

    @property
    def with_schemas(self) -> dict[str, DecoderSection]:
        """Return the columns that are decoded with schemas: the key, the value and `headers.<name>`."""
        every: dict[str, DecoderSection] = {"key": self.key, "value": self.value}
        every |= {f"headers.{name}": decoding for name, decoding in self.headers.items()}
        return {column: decoding for column, decoding in every.items() if decoding.has_schema()}

    @property
    def unknown(self) -> dict[str, Unknown]:
        """Return the treatment of properties that a JSON Schema does not name, by column that has one."""
        schemas = self.with_schemas.items()
        return {column: decoding.unknown or "drop" for column, decoding in schemas if decoding.has_json_columns}

    @model_validator(mode="after")
    def _schemas_are_somewhere(self) -> Self:
        for column, decoding in self.decoded.items():
            if decoding.decoder.from_registry and self.registry is None:
                if decoding.declared_schema is None:
                    raise ValueError(
                        f"`registry`, or `{column}.schema` (a file beside the YAML), for `{column}.decode: "
                        f"{decoding.decode}`"
                    )
                if decoding.subjects:
                    raise ValueError(f"`registry` for `{column}.subjects`")
                if decoding.schema_id == "header":
                    raise ValueError(f"`registry` for `{column}.schema_id: header`")
        return self

    @model_validator(mode="after")
    def _one_way_to_name_topics(self) -> Self:
        if (self.topics is None) == (self.pattern is None):
            raise ValueError("expected exactly one of `topics` (a list of names) and `pattern` (a regular expression)")
        if self.topics and len(set(self.topics)) != len(self.topics):
            raise ValueError("expected each topic only once in `topics`")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise ValueError(f"expected a regular expression in `pattern` ({error})") from error
        return self

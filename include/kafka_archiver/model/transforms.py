"""The transforms of a plan: each with every setting that affects a byte, in the order of their work. Pure.

A distribution adds a step with an entry point of the group `kafka_archiver.steps`. The entry point's name is the step's
name in the YAML; its value is a subclass of :class:`StepType`. Install the distribution on the Spark executors too:
records are transformed there. It cannot replace a step of this package.
"""

import hashlib
import hmac
import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    PlainValidator,
    SerializeAsAny,
    Tag,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from kafka_archiver.messages.entry_points import Registry
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.yaml_faults import fault_lines
from kafka_archiver.model.schemas import Schema
from kafka_archiver.values.documents import Value, unwritten
from kafka_archiver.values.yaml_values import NoTruth

_PART = re.compile(r"`([^`]+)`|([^.`]+)")
# The columns of a record that have decoded fields.
ROOTS = ("key", "value", "headers")


def segments_of(path: str) -> tuple[str, ...]:
    """The names of a path: `value.card.number`, or in backticks: value.`a.b`. Without a column first, it is of `value`.

    :raises ValueError: this is not a path.
    """
    names: list[str] = []
    at = 0
    while True:
        match = _PART.match(path, at)
        if match is None:
            raise ValueError(f"a field's path like value.card.number, with names that have dots in backticks: {path!r}")
        names.append(match[1] or match[2])
        at = match.end()
        if at == len(path):
            return tuple(names) if names[0] in ROOTS else ("value", *names)
        if path[at] != ".":
            raise ValueError(f"a dot between the names of the path {path!r}")
        at += 1


def _path(path: str) -> str:
    segments_of(path)
    return path


def _field_path(path: str) -> str:
    names = segments_of(path)
    if len(names) < (3 if names[0] == "headers" else 2):
        raise ValueError(f"a field within the column, as {path}.id; found the column {path!r}")
    return path


Function = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
Module = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*$")]
By = Literal["record", "batch"]
Concurrency = Annotated[int, Field(ge=1, le=1000)]
# A field of a record, or a whole decoded column; and only a field.
Path = Annotated[str, AfterValidator(_path)]
Within = Annotated[str, AfterValidator(_field_path)]
Paths = Annotated[tuple[Path, ...], Field(min_length=1)]


class StepType(Value):
    """A step: its settings, and what is true of it. Nothing else asks for its name.

    :cvar MAKER: `module:function`, which makes the `records.pipeline.transform.base.Transforming` of a step and the
        secret keys by name; it is imported where records are transformed.
    :cvar MAIN: the setting that the YAML may give without its name, as in `drop: value.a`.
    :cvar TAKES_AWAY: with the fields, it takes away something that objects must not keep elsewhere either.
    :cvar TAKES_RECORDS: it takes records as Kafka has them, with keys and headers, whatever is decoded and stored.
    """

    MAKER: ClassVar[str]
    MAIN: ClassVar[str] = "fields"
    TAKES_AWAY: ClassVar[bool] = False
    TAKES_RECORDS: ClassVar[bool] = False
    if TYPE_CHECKING:
        # The field of each step, of the type Literal; not declared here, so that it stands where plans have it.
        step: str

    @abstractmethod
    def touches(self, path: tuple[str, ...]) -> bool:
        """Return True if the field of a path may be another one, or have another value, behind the step."""


def _touch(fields: Iterable[str | tuple[str, ...]], path: tuple[str, ...]) -> bool:
    """Return True if a path is that of one of these fields, of what is around it, or of what is within it."""
    touched = (segments_of(name) if isinstance(name, str) else name for name in fields)
    return any(all(a == b for a, b in zip(names, path, strict=False)) for names in touched)


class StepOfFields(StepType):
    """A step that changes fields."""

    if TYPE_CHECKING:
        fields: tuple[str, ...]

    def touches(self, path: tuple[str, ...]) -> bool:
        """See `StepType`."""
        return _touch(self.fields, path)


class _WithRules(StepOfFields):
    """A step whose rules have changed. A plan repeats the rules that it was made with.

    `rules`: 1, as in plans without this field: a list is one value, and a UUID of Avro is its 16 bytes. 2: each item
    of a list is a value, and a UUID is its text. 3: a decimal is all its digits, also a small one (2: 1E-7).
    """

    rules: Annotated[Literal[1, 2, 3], NoTruth] = 3

    @model_validator(mode="after")
    def _of_old_plans(self, info: ValidationInfo) -> Self:
        is_old = info.mode == "json" and "rules" not in self.model_fields_set
        return self.model_copy(update={"rules": 1}) if is_old else self


class Mask(_WithRules):
    """Replaces each character of texts, except the last `keep`; values of other types become null."""

    MAKER: ClassVar[str] = "kafka_archiver.records.pipeline.transform.steps:mask"
    TAKES_AWAY: ClassVar[bool] = True
    step: Literal["mask"] = "mask"
    fields: Paths
    character: Annotated[str, Field(min_length=1, max_length=1)] = "*"
    keep: Annotated[int, Field(ge=0), NoTruth] = 0


class Hash(_WithRules):
    """Replaces values by their HMAC-SHA256, as 64 hexadecimal digits.

    `key`: the name of the secret key. `fingerprint`: of the key itself; a plan has it.
    """

    MAKER: ClassVar[str] = "kafka_archiver.records.pipeline.transform.steps:keyed_hash"
    TAKES_AWAY: ClassVar[bool] = True
    step: Literal["hash"] = "hash"
    fields: Paths
    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9_./-]+$", max_length=250)]
    fingerprint: str = ""


class Drop(StepOfFields):
    """Leaves fields out."""

    MAKER: ClassVar[str] = "kafka_archiver.records.pipeline.transform.steps:drop"
    TAKES_AWAY: ClassVar[bool] = True
    step: Literal["drop"] = "drop"
    fields: Annotated[tuple[Within, ...], Field(min_length=1)]


class Rename(StepType):
    """Gives fields other names, in their place: new names by paths."""

    MAKER: ClassVar[str] = "kafka_archiver.records.pipeline.transform.steps:rename"
    MAIN: ClassVar[str] = "names"
    step: Literal["rename"] = "rename"
    names: Annotated[dict[Within, Annotated[str, Field(min_length=1)]], Field(min_length=1)]

    def touches(self, path: tuple[str, ...]) -> bool:
        """See `StepType`."""
        new_paths = ((*segments_of(old)[:-1], new) for old, new in self.names.items())
        return _touch((*self.names, *new_paths), path)


class Flatten(StepType):
    """Makes the fields of structs within the value columns of their own: `address_city`."""

    MAKER: ClassVar[str] = "kafka_archiver.records.pipeline.transform.steps:flatten"
    MAIN: ClassVar[str] = "separator"
    step: Literal["flatten"] = "flatten"
    separator: Annotated[str, Field(min_length=1)] = "_"

    def touches(self, path: tuple[str, ...]) -> bool:
        """See `StepType`."""
        return path[0] == "value" and any(self.separator in name for name in path[1:])


_OWN: dict[str, type[StepType]] = {"mask": Mask, "hash": Hash, "drop": Drop, "rename": Rename, "flatten": Flatten}
_REGISTRY = Registry("kafka_archiver.steps", "transform.steps", _OWN, StepType)


def step_names() -> tuple[str, ...]:
    """Return the names of all steps."""
    return _REGISTRY.names()


def is_step(name: object) -> bool:
    """Return True if there is a step of that name."""
    return name in _REGISTRY


@cache
def step_type(name: str) -> type[StepType]:
    """Return the step of that name, as it is declared.

    :raises ConfigError: no distribution adds it, two do, or it cannot be loaded.
    """
    return _REGISTRY.get(name)


def _added_step(value: Any, info: ValidationInfo) -> StepType:
    """Return a step of another distribution."""
    if isinstance(value, StepType):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"one of {', '.join(step_names())} with its settings, for example `mask: value.card`")
    try:
        kind = step_type(str(value.get("step")))
        return kind.model_validate_json(json.dumps(value)) if info.mode == "json" else kind.model_validate(value)
    except ConfigError as error:
        raise ValueError(str(error).removeprefix("transform.steps: expected ")) from None
    except ValidationError as error:
        lines = "; ".join(fault_lines(error, "`{}` is none of them".format))
        raise ValueError(f"other settings of `{value['step']}`: {lines}") from None


def _branch(value: Any) -> str:
    """Return the branch of a step: its own, or that of other distributions; the brackets mark what is no key."""
    name = value.get("step") if isinstance(value, dict) else getattr(value, "step", None)
    return name if name in _OWN else "[added]"


Step = Annotated[
    Annotated[Mask, Tag("mask")]
    | Annotated[Hash, Tag("hash")]
    | Annotated[Drop, Tag("drop")]
    | Annotated[Rename, Tag("rename")]
    | Annotated[Flatten, Tag("flatten")]
    | Annotated[SerializeAsAny[StepType], PlainValidator(_added_step), Tag("[added]")],
    Discriminator(_branch),
]


class Mapper(Value):
    """A Python function that makes 0..n records of each.

    `function`: `module:name`. `by`: what it takes. `modules`: further modules and packages whose code it depends on.
    `columns`: the columns of the values that it returns; without, values are as they were. `concurrency`: of the calls
    of an `async` function. `digest`: of the code; a plan has it.
    """

    function: Function
    by: By = "record"
    modules: tuple[Module, ...] = ()
    columns: Schema | None = None
    concurrency: Concurrency = 16
    digest: str = ""


class Sql(Value):
    """The work of Spark: `where` and `select` in its SQL, or a `function` from a DataFrame to a DataFrame,
    `module:name`; and `time`, the expression of `timestamp.from: sql`.

    `modules`: as those of a mapper. A plan also has `digest`, of the function's code; `spark` and `java`, the versions
    that evaluate (plans of earlier releases have no `java`, and take any); and by topic, `seen`, a digest of what it
    sees of records, `made`, the type of the values that it makes, as Spark's JSON, and `literals`, a digest of the
    values that a function writes into its frame.
    """

    where: Annotated[str, Field(min_length=1)] | None = unwritten(None)
    select: tuple[Annotated[str, Field(min_length=1)], ...] = unwritten(())
    time: Annotated[str, Field(min_length=1)] | None = unwritten(None)
    function: Function | None = unwritten(None)
    modules: tuple[Module, ...] = unwritten(())
    digest: str = unwritten("")
    spark: str = ""
    java: str = unwritten("")
    seen: dict[str, str] = unwritten({})
    made: dict[str, str] = unwritten({})
    literals: dict[str, str] = unwritten({})

    @property
    def makes_values(self) -> bool:
        """Return True if it may change values."""
        return bool(self.select or self.function)

    @property
    def declared_keys(self) -> tuple[str, ...]:
        """The YAML's keys of what Spark does."""
        texts = {"where": self.where, "select": self.select, "timestamp.sql": self.time}
        return (*([self.function] if self.function else []), *(name for name, text in texts.items() if text))

    def asked(self) -> "Sql":
        """Without what only a plan has."""
        return self.model_copy(update={"spark": "", "java": "", "seen": {}, "made": {}, "literals": {}})


class Transform(Value):
    """The transforms of a plan, in the order of their work: Spark's, the mapper, then the steps."""

    sql: Sql | None = unwritten(None)
    mapper: Mapper | None = unwritten(None)
    steps: tuple[Step, ...] = unwritten(())

    @property
    def hashes(self) -> Iterator[Hash]:
        """The steps that need a secret key."""
        yield from (step for step in self.steps if isinstance(step, Hash))

    @property
    def keys(self) -> frozenset[str]:
        """The names of the secret keys."""
        return frozenset(step.key for step in self.hashes)

    @property
    def has_code(self) -> bool:
        """Return True if a person's code is part of it."""
        return self.mapper is not None or (self.sql is not None and self.sql.function is not None)

    @property
    def takes_records(self) -> bool:
        """Return True if it takes whole records: their keys and headers too."""
        return self.mapper is not None or self.sql is not None or any(step.TAKES_RECORDS for step in self.steps)

    def touches(self, path: tuple[str, ...]) -> bool:
        """Return True if the field of a path (`value`, `a`, `b`) may have another value behind it than in Kafka."""
        sql = self.sql is not None and self.sql.makes_values and path[0] == "value"
        return sql or self.mapper is not None or any(step.touches(path) for step in self.steps)

    @property
    def makes_columns(self) -> bool:
        """Return True if values have columns behind it, whatever they were before."""
        return bool((self.mapper and self.mapper.columns) or (self.sql and self.sql.makes_values))


def fingerprint(key: str) -> str:
    """Return the fingerprint of a secret key in a plan: 16 hexadecimal digits, which do not tell the key."""
    return hmac.new(key.encode(), b"kafka-archiver: fingerprint of a key", hashlib.sha256).hexdigest()[:16]

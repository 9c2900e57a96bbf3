"""The layouts `fields`, by values of fields, <topic>/country=DE/id=7, and `path`, by any pattern."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator
from pydantic import Field as Bounds

from kafka_archiver.model.layouts.base import NamedLayout
from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.options import Every, Values
from kafka_archiver.model.layouts.template import field_of, parsed
from kafka_archiver.model.layouts.tokens import Field, TextToken, Token, TopicToken
from kafka_archiver.model.object_keys import encode
from kafka_archiver.values.yaml_values import YamlValue


class PathOptions(Every, Values):
    """`path`: the pattern."""

    path: str


def _by_pattern(options: PathOptions) -> PathForm:
    columns = re.findall(r"(?:^|/)([^/{}=]+)=", options.path)
    return PathForm(parsed(options.path), columns=tuple(columns), **options.clock(), **options.values())


class Filed(YamlValue):
    """One folder. `name`: of the column (`as` in the YAML); `buckets`: see `tokens.Field`."""

    field: Annotated[str, AfterValidator(field_of)]
    name: Annotated[str, Bounds(alias="as")] = ""
    buckets: Annotated[int, Bounds(ge=0, le=1_000_000)] = 0

    @property
    def column(self) -> str:
        """The name of the folder's column, percent-encoded."""
        return encode(self.name or self.field.rsplit(".", 1)[-1])


def _filed(field: object) -> object:
    return {"field": field} if isinstance(field, str) else field


def _distinct(fields: tuple[Filed, ...]) -> tuple[Filed, ...]:
    names = [field.column.lower() for field in fields]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"expected a column of its own for each field, found {twice[0]!r} twice; `as` gives another name"
        )
    return fields


Fields = Annotated[
    tuple[Annotated[Filed, BeforeValidator(_filed)], ...], Bounds(min_length=1), AfterValidator(_distinct)
]


class FieldsOptions(Values):
    """`fields`: one folder for each. `style`: country=DE, or only DE. `topic`: whether the topic's folder is first."""

    fields: Fields
    style: Literal["hive", "values"] = "hive"
    topic: bool = True


def _by_fields(options: FieldsOptions) -> PathForm:
    first: list[Token] = [TopicToken(), TextToken("/")] if options.topic else []
    hive = options.style == "hive"
    columns = tuple(field.column for field in options.fields) if hive else ()
    return PathForm((*first, *folders(options.fields, hive)), columns=columns, **options.values())


def folders(fields: Sequence[Filed], hive: bool, delimiter: str = "/") -> list[Token]:
    """The tokens of these folders."""
    tokens: list[Token] = []
    for number, field in enumerate(fields):
        tokens.append(TextToken(delimiter * bool(number) + (f"{field.column}=" if hive else "")))
        tokens.append(Field(field.field, field.buckets))
    return [token for token in tokens if token != TextToken("")]


PATH = NamedLayout("path", PathOptions, _by_pattern)
FIELDS = NamedLayout("fields", FieldsOptions, _by_fields)

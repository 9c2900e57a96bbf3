"""Values that a person writes in the YAML. Pure."""

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator, ValidationInfo, field_validator
from pydantic_core import PydanticKnownError

from kafka_archiver.values.documents import Value


def _is_no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticKnownError("int_type")
    return value


# For a whole number of a value that is in the YAML and in documents, too.
NoTruth = BeforeValidator(_is_no_truth)


class YamlValue(Value):
    """A section of the YAML, or the options of a format or a layout: `true` is no number.

    No part of a document: read strictly, a tuple whose value Python has looked at before is refused.
    """

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Check that `true` is not taken for 1."""
        if isinstance(value, bool):
            types = list(_types(cls.model_fields[info.field_name or ""].annotation))
            if bool not in types and (int in types or float in types):
                raise PydanticKnownError("int_type" if int in types else "float_type")
        return value


def _types(annotation: Any) -> Iterator[Any]:
    """Yield the types that a field takes."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        yield from map(type, parts)
    elif origin is Annotated:
        yield from _types(parts[0])
    elif origin in (Union, UnionType):
        for part in parts:
            yield from _types(part)
    else:
        yield annotation

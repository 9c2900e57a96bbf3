"""A transform step: cuts texts."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from kafka_archiver.model.transforms import Paths, StepOfFields
from kafka_archiver.records.pipeline.transform.paths import Changed
from kafka_archiver.records.pipeline.transform.steps import Edit, edit_of


class Cut(StepOfFields):
    MAKER: ClassVar[str] = f"{__name__}:make"
    TAKES_AWAY: ClassVar[bool] = True
    step: Literal["cut"] = "cut"
    fields: Paths
    to: Annotated[int, Field(ge=0)]


def make(step: Cut, keys: Mapping[str, str]) -> Edit:
    def change(field: pa.Field) -> Changed:
        return field, lambda texts: pc.utf8_slice_codeunits(texts, 0, step.to)

    return Edit(edit_of(step, path, change) for path in step.fields)

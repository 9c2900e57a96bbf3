"""A stage with a setting: of every n records it keeps the first. It takes records as Kafka has them."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from kafka_archiver.model.transforms import StepType
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.pipeline.transform.base import Fields
from kafka_archiver.values.columns import column


class Sample(StepType):
    MAKER: ClassVar[str] = f"{__name__}:Sampling"
    MAIN: ClassVar[str] = "every"
    TAKES_RECORDS: ClassVar[bool] = True
    step: Literal["sample"] = "sample"
    every: Annotated[int, Field(ge=1)]

    def touches(self, path: tuple[str, ...]) -> bool:
        return False


class Sampling:
    def __init__(self, step: Sample, keys: Mapping[str, str]) -> None:
        self._every = step.every

    def fields(self, before: Fields) -> Fields:
        return before

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        offsets = column(batch, "offset")
        marks.filter(offsets[np.mod(offsets, self._every) != 0])
        return batch

"""A layout: by the length of values."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.tokens import Partition, TextToken, TopicToken
from kafka_archiver.values.yaml_values import YamlValue


class Options(YamlValue):
    most: int = 3


@dataclass(frozen=True)
class Length:
    most: int

    def labels(self, batch: pa.RecordBatch) -> list[str | None]:
        lengths = pc.binary_length(batch["value"]).to_pylist()
        return [None if length is None else str(min(length, self.most)) for length in lengths]


class ByLength:
    name = "by_length"
    options = Options

    def form(self, options: Options) -> PathForm:
        tokens = (TopicToken(), TextToken("/p="), Partition(), TextToken("/length="), Length(options.most))
        return PathForm(tokens, missing="null")

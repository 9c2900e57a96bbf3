"""The paths of Lenses' S3 sink: `lenses`, `lenses_keys_and_values` and `lenses_values`.

`store.url` takes the place of bucket and prefix. A file's offset is the first offset of the chunk.
"""

from functools import partial
from typing import Annotated

from pydantic import Field

from kafka_archiver.model.layouts.base import NamedLayout
from kafka_archiver.model.layouts.fields import Fields, folders
from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.options import Values
from kafka_archiver.model.layouts.template import parsed
from kafka_archiver.model.layouts.tokens import Partition, Start, TextToken, TopicToken
from kafka_archiver.values.yaml_values import YamlValue


class Padded(YamlValue):
    """`zero_pad`: the digits of offsets, `zero_pad_partition`: those of partitions."""

    zero_pad: Annotated[int, Field(ge=1, le=40)] = 1
    zero_pad_partition: Annotated[int, Field(ge=1, le=40)] = 1


class PartitionedOptions(Padded, Values):
    """`fields`: what stands after PARTITIONBY, as value.f, key and header.h."""

    fields: Fields


def _by_partition(options: Padded) -> PathForm:
    return PathForm((*parsed("{topic}/"), Partition(options.zero_pad_partition)), (Start(options.zero_pad),))


def _by_fields(options: PartitionedOptions, hive: bool) -> PathForm:
    columns = tuple(field.column for field in options.fields) if hive else ()
    partition, start = Partition(options.zero_pad_partition), Start(options.zero_pad)
    name = (TopicToken(), TextToken("("), partition, TextToken("_"), start, TextToken(")"))
    return PathForm(tuple(folders(options.fields, hive)), name, columns=columns, **options.values())


LENSES = (
    # Without PARTITIONBY: orders/3/42.
    NamedLayout("lenses", Padded, _by_partition),
    # WITHPARTITIONER=KeysAndValues: country=DE/orders(3_42).
    NamedLayout("lenses_keys_and_values", PartitionedOptions, partial(_by_fields, hive=True)),
    # WITHPARTITIONER=Values: DE/orders(3_42).
    NamedLayout("lenses_values", PartitionedOptions, partial(_by_fields, hive=False)),
)

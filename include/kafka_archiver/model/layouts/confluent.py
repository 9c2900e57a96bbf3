"""The paths of Confluent's S3 sink: `confluent_default`, `_field`, `_time`, `_daily` and `_hourly`.

`store.url` takes the place of the bucket and `topics.dir`. A file's number is the first offset of the chunk: the first
offset of its own records would depend on records that come later.
"""

import re
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from kafka_archiver.model.layouts.base import NamedLayout
from kafka_archiver.model.layouts.date_patterns import tokens_of
from kafka_archiver.model.layouts.fields import Fields, folders
from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.options import ClockOptions, Every, Values
from kafka_archiver.model.layouts.tokens import Partition, Start, TextToken, Token, TopicToken
from kafka_archiver.values.yaml_values import YamlValue

Delimiter = Annotated[str, Field(min_length=1, max_length=20)]
_YEAR_TO_DAY = "'year'=YYYY/'month'=MM/'day'=dd"


class Delimiters(YamlValue):
    """Their `directory.delim`, `file.delim` and `filename.offset.zero.pad.width`."""

    directory_delimiter: Delimiter = "/"
    file_delimiter: Delimiter = "+"
    zero_pad: Annotated[int, Field(ge=0, le=40)] = 10

    def form(self, inner: list[Token], columns: tuple[str, ...], **more: Any) -> PathForm:
        """The topic, the partitioner's folders, and the name."""
        between = TextToken(self.file_delimiter)
        name = (TopicToken(), between, Partition(), between, Start(self.zero_pad))
        return PathForm(
            (TopicToken(), TextToken(self.directory_delimiter), *inner), name, self.directory_delimiter, columns, **more
        )


class FieldOptions(Delimiters, Values):
    """`fields`: their `partition.field.name`, as value.country."""

    fields: Fields


class TimeOptions(Delimiters, Every):
    """`path_format` and `every`: their `path.format` and `partition.duration.ms`."""

    path_format: str


class DayOptions(Delimiters, ClockOptions):
    """Options of the daily and the hourly partitioner."""


def _by_partition(options: Delimiters) -> PathForm:
    return options.form([TextToken("partition="), Partition()], ("partition",))


def _by_fields(options: FieldOptions) -> PathForm:
    inner = folders(options.fields, True, options.directory_delimiter)
    return options.form(inner, tuple(field.column for field in options.fields), **options.values())


def _by_time(options: Any, pattern: str) -> PathForm:
    # Theirs has `/` in the pattern, whatever the delimiter of directories is.
    tokens: list[Token] = list(tokens_of(pattern))
    columns = re.findall(r"(?:^|/)'([^']+)'=", pattern)
    return options.form(tokens, tuple(columns), missing="null", **options.clock())  # type: ignore[no-any-return]


CONFLUENT = (
    # DefaultPartitioner: orders/partition=3/orders+3+0000000042.
    NamedLayout("confluent_default", Delimiters, _by_partition),
    # FieldPartitioner: orders/country=DE/orders+3+0000000042.
    NamedLayout("confluent_field", FieldOptions, _by_fields),
    # TimeBasedPartitioner: orders/year=2026/month=11/day=21/hour=05/orders+3+0000000042.
    NamedLayout("confluent_time", TimeOptions, lambda options: _by_time(options, options.path_format)),
    # DailyPartitioner and HourlyPartitioner: the same with folders down to the day, and to the hour.
    NamedLayout("confluent_daily", DayOptions, partial(_by_time, pattern=_YEAR_TO_DAY)),
    NamedLayout("confluent_hourly", DayOptions, partial(_by_time, pattern=f"{_YEAR_TO_DAY}/'hour'=HH")),
)

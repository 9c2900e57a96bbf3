"""The transforms of a plan, in order, and the columns that they leave."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from kafka_archiver.messages.entry_points import imported
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.settings import Settings
from kafka_archiver.model.transforms import Mapper, StepType
from kafka_archiver.records.decode.base import DecoderInput
from kafka_archiver.records.decode.decoders import decoder
from kafka_archiver.records.decode.json_text.columns import from_columns
from kafka_archiver.records.pipeline.transform.base import NOWHERE, BatchOrigin, Fields, Transforming
from kafka_archiver.records.pipeline.transform.batches import Batches
from kafka_archiver.records.pipeline.transform.code import load
from kafka_archiver.records.pipeline.transform.from_spark import FromSpark
from kafka_archiver.records.pipeline.transform.hashes import key_of
from kafka_archiver.records.pipeline.transform.records import Records


class Chain(NamedTuple):
    """Transforms, and the decoded columns behind the last one."""

    transforms: Sequence[Transforming]
    fields: Fields


def chain_of(settings: Settings, before: Fields, place: BatchOrigin = NOWHERE) -> Chain:
    """The transforms of a plan.

    :param before: the columns that the decoders make.
    :raises ConfigError: a transform cannot work on these columns, or objects would keep what it takes away.
    """
    transform = settings.transform
    if transform is None:
        return Chain((), before)
    chain: list[Transforming] = []
    fields = before
    if transform.sql:
        if transform.sql.makes_values and settings.content != "value":
            raise ConfigError(
                f"transform: `select` and `function` make columns, and `store.content: {settings.content}` stores the "
                "values as Kafka has them; set `store.content: value` (`store.metadata` adds columns of Kafka)"
            )
        chain.append(FromSpark(transform.sql, place.topic))
        fields = chain[-1].fields(fields)
        if transform.sql.makes_values and place.topic not in transform.sql.made:
            # Before Spark was asked, nobody knows the columns of the others.
            return Chain(chain, fields)
    if transform.mapper:
        chain.append(_mapper(transform.mapper, settings, fields, place))
        fields = chain[-1].fields(fields)
    for step in transform.steps:
        if not step.TAKES_RECORDS:
            _require_no_rest(settings, step)
        chain.append(imported(step.MAKER)(step, place.keys))
        fields = chain[-1].fields(fields)
    return Chain(chain, fields)


def require_transforms(settings: Settings, place: BatchOrigin) -> None:
    """Check this process before it reads anything.

    :raises PermanentError: the code of the mapper, or a secret key, is not that of the plan.
    :raises ConfigError: there is no such function.
    """
    if settings.transform is None:
        return
    if settings.transform.mapper:
        load(settings.transform.mapper)
    for step in settings.transform.hashes:
        key_of(step, place.keys)


def _mapper(mapper: Mapper, settings: Settings, before: Fields, place: BatchOrigin) -> Transforming:
    typed = before.value is not None or before.key is not None or mapper.columns is not None
    if settings.content == "both" or (settings.content == "record" and typed):
        raise ConfigError(
            f"transform.mapper: `store.content: {settings.content}` stores keys and values as Kafka has them, and the "
            "mapper changes decoded ones; set `store.content: value`, or let it work on bytes (`decode: bytes`, no "
            "`schema`)"
        )
    made_field = values_field(mapper)
    return (Batches if mapper.by == "batch" else Records)(mapper, place, made_field)


def values_field(mapper: Mapper) -> pa.Field | None:
    """The field of the values that a mapper returns; None: as they were.

    :raises ConfigError: its schema cannot be read.
    """
    if mapper.columns is None:
        return None
    try:
        columns = json.loads(mapper.columns.text)
        schema = from_columns(columns) if isinstance(columns, list) else mapper.columns
        return decoder("json", DecoderInput(schema)).field
    except ConfigError as error:
        raise ConfigError(f"transform.mapper.schema: {error}") from None


def _require_no_rest(settings: Settings, step: StepType) -> None:
    name = step.step
    if settings.content == "record":
        raise ConfigError(
            f"transform.steps: {name}: `store.content: record` stores the bytes as Kafka has them, without decoded "
            "columns; set `store.content: value` (`store.metadata` adds columns of Kafka)"
        )
    left_out = "the bytes of keys and values" if settings.content == "both" else ""
    if "headers" in settings.metadata and settings.headers:
        left_out = "all headers"
    if step.TAKES_AWAY and left_out:
        raise ConfigError(
            f"transform.steps: {name}: the objects would keep {left_out} as Kafka has them, with what {name} takes "
            "away; set `store.content: value`, and no headers in `store.metadata`"
        )

"""The list of stages that a plan's settings need, in order."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.model.layouts.registry import counts_hours
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats.base import COLUMNS, is_typed
from kafka_archiver.records.formats.registry import get_format
from kafka_archiver.records.formats.shared.columns import needed
from kafka_archiver.records.pipeline.base import HOUR, PART, Marks, Stage
from kafka_archiver.records.pipeline.decode import ColumnDecoding, columns_of, decode_stages, fields_of
from kafka_archiver.records.pipeline.filing.event_time import time_stage
from kafka_archiver.records.pipeline.filing.paths import LayoutStage, Paths
from kafka_archiver.records.pipeline.refusals import Aside, TooLarge, Unread
from kafka_archiver.records.pipeline.transform.base import NOWHERE, BatchOrigin
from kafka_archiver.records.pipeline.transform.chain import chain_of
from kafka_archiver.records.pipeline.transform.from_spark import of_spark
from kafka_archiver.values.columns import column


def stages_of(
    settings: Settings,
    decoded: Sequence[ColumnDecoding] = (),
    place: BatchOrigin = NOWHERE,
    paths: Paths | None = None,
    aside: Mapping[int, str] = MappingProxyType({}),
) -> list[Stage]:
    """The stages between the reader and the encoders.

    :param decoded: how the topic's records are decoded. :param place: of the batches.
    :param paths: of the chunk; None: records get no path.
    :param aside: why, by offset, for records that are rejected before anything looks at them.
    """
    schema = columns_of(settings, decoded, place.topic)
    kept = needed(schema)
    chain = chain_of(settings, fields_of(decoded), place).transforms
    # A mapper takes whole records. What is decoded is needed until then.
    mapped = settings.transform is not None and settings.transform.takes_records
    optional = {
        "value": True,
        "key": mapped or settings.needs_key,
        "headers": mapped or settings.needs_headers,
        "timestamp_type": mapped,
    }
    columns = [name for name in COLUMNS if name in kept or optional.get(name)]
    columns += of_spark(settings.transform)
    stages: list[Stage] = [Aside(aside)] if aside else []
    match settings.null_value:
        case "skip":
            stages.append(_skip_null_values)
        case "archive":
            pass
        case unknown:
            assert_never(unknown)
    stages.append(Unread(columns))
    stages.append(Select(columns))
    if settings.max_value_bytes is not None:
        stages.append(TooLarge(settings.max_value_bytes))
    timed = time_stage(settings)
    reading = [*(paths.extracts.values() if paths else ()), *([timed.extract] if timed and timed.extract else ())]
    filing = {decoding.decoded for decoding in reading if decoding.decoded}
    stages += decode_stages(settings, decoded, [decoding.added for decoding in decoded] if mapped else {*kept, *filing})
    if timed:
        stages.append(timed)
    stages += chain
    if paths:
        hours = counts_hours(settings)
        stages.append(LayoutStage(paths, hours))
        kept = [*kept, PART, *([HOUR] if hours else [])]
    stages.append(Select(kept))
    fitting = None if is_typed(schema) else get_format(settings.format).stage(settings)
    return [*stages, fitting] if fitting else stages


class Select:
    """Keeps the columns that are archived. Readers give further columns if dead letters need them."""

    def __init__(self, columns: Collection[str]) -> None:
        self._columns = list(columns)

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:  # noqa: ARG002 - it leaves none out
        return batch if batch.schema.names == self._columns else batch.select(self._columns)


def _skip_null_values(batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
    """Filter records whose value is null."""
    values = batch.column("value")
    if values.null_count:
        marks.filter(column(batch.filter(pc.is_null(values)), "offset"))
    return batch

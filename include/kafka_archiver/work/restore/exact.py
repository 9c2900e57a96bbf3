"""Records of an archive as the target gets them: exactly, or changed where the caller allows it."""

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.adopted import AdoptedObject
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.restore import Inexact
from kafka_archiver.model.settings import Settings
from kafka_archiver.reader.chunks import is_values
from kafka_archiver.records.formats.base import UNREAD
from kafka_archiver.records.formats.mak import keeps_values_alone
from kafka_archiver.records.formats.shared.records import COLUMNS, kafkas, normalised
from kafka_archiver.records.reading.merge import OFFSET
from kafka_archiver.values.columns import Int64s, column

_WANTED = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")
# What each change is, for messages.
CHANGES: dict[Inexact, str] = {
    "values_only": "the archive has only their values: they get no key and no headers, and the earliest timestamp of "
    "their object (of an adopted one without timestamps: none)",
    "rows": "a mapper has made them: they are its rows, not the records of Kafka",
    "lost": "nobody has them: the target will not have them",
    "timestamps": "the client cannot write a timestamp of 0 (it means `now`): they get 1 ms later; of records whose "
    "timestamp could not be read, -1",
    "headers": "the client cannot write names of headers with NUL, or that are not UTF-8: these headers are left out",
}


class NotExactError(ConfigError):
    """Records cannot be restored as they were, and the caller does not allow the change."""


def refusal(change: Inexact, count: int, where: str) -> NotExactError:
    """Return the error for records that would be changed."""
    return NotExactError(
        f"{where}: {count:,} records cannot be restored exactly: {CHANGES[change]}. To go on, allow it: "
        f"--allow {change}"
    )


def kind_of(settings: Settings, has_columns: bool) -> Inexact | None:
    """Return how objects of these settings differ from the records of Kafka; None: they have all of them.

    :param has_columns: whether keys or values are decoded to columns, by these settings or a schema.
    :raises ConfigError: they have decoded columns, and no bytes to restore.
    """
    transform = settings.transform
    if transform is not None and transform.mapper is not None:
        if settings.content == "value":
            raise _no_bytes(settings)
        return "rows"
    if settings.content == "value":
        if has_columns:
            raise _no_bytes(settings)
        return "values_only"
    return "values_only" if keeps_values_alone(settings) else None


def _no_bytes(settings: Settings) -> ConfigError:
    return ConfigError(
        f"the archive has decoded columns of these records (store.content: value, format {settings.format}), not their "
        "bytes: they cannot be restored. Archives that shall go back to Kafka need store.content: record or both"
    )


def writable(
    batch: pa.RecordBatch, entry: ObjectEntry | AdoptedObject, where: str, allowed: Collection[Inexact] = ()
) -> pa.RecordBatch:
    """Return records as the target gets them: the columns `COLUMNS`.

    :param batch: of an object, with `OFFSET`, and `UNREAD` of dead letters.
    :param where: the partition, for messages.
    :raises NotExactError: records would be changed, and that is not allowed.
    """
    records = _of_values(batch, entry) if is_values(batch.drop_columns([OFFSET.name])) else _of_records(batch)
    records = _with_times(records, where, allowed)
    records = _with_headers(records, where, allowed)
    if UNREAD.name in batch.schema.names and (lacking := batch.column(UNREAD.name)).null_count < len(lacking):
        for change, name in (("timestamps", "timestamp"), ("headers", "headers")):
            count = lacking.field("column").to_pylist().count(name)
            if count and change not in allowed:
                raise refusal(change, count, where)  # type: ignore[arg-type]
    return records


def _of_records(batch: pa.RecordBatch) -> pa.RecordBatch:
    names = {name: field.name for field in batch.schema if (name := kafkas(field)) in _WANTED}
    arrays = [batch.column(names[name]) for name in _WANTED]
    return normalised(pa.RecordBatch.from_arrays(arrays, names=list(_WANTED)))


def _of_values(batch: pa.RecordBatch, entry: ObjectEntry | AdoptedObject) -> pa.RecordBatch:
    rows = batch.num_rows
    offsets = batch.column(OFFSET.name)
    if offsets.null_count:
        raise ConfigError(
            f"{entry.key} has values without their offsets, and records of other objects lie between them: their order "
            "is not known, so they cannot be restored"
        )
    columns = [
        offsets,
        pa.array(np.full(rows, -1 if entry.min_timestamp is None else entry.min_timestamp, np.int64)),
        pa.array(np.zeros(rows, np.int32)),
        pa.nulls(rows, pa.binary()),
        batch.column("value"),
        pa.nulls(rows, COLUMNS.field("headers").type),
    ]
    return normalised(pa.RecordBatch.from_arrays(columns, names=list(_WANTED)))


def _with_times(batch: pa.RecordBatch, where: str, allowed: Collection[Inexact]) -> pa.RecordBatch:
    times: Int64s = column(batch, "timestamp")
    zeros = times == 0
    if not zeros.any():
        return batch
    if "timestamps" not in allowed:
        raise refusal("timestamps", int(zeros.sum()), f"{where} offset {_first(batch, zeros)} and behind")
    return _replaced(batch, "timestamp", pa.array(np.where(zeros, 1, times)))


def _with_headers(batch: pa.RecordBatch, where: str, allowed: Collection[Inexact]) -> pa.RecordBatch:
    headers = batch.column("headers")
    pairs = headers.flatten()
    if not len(pairs):
        return batch
    keys = pc.struct_field(pairs, 0)
    bad = pc.match_substring(keys, "\0")
    if not pc.any(bad).as_py():
        return batch
    affected = np.zeros(batch.num_rows, bool)
    affected[pc.list_parent_indices(headers).filter(bad).to_pylist()] = True
    if "headers" not in allowed:
        raise refusal("headers", int(affected.sum()), f"{where} offset {_first(batch, affected)} and behind")
    kept = pa.array([[pair for pair in row if "\0" not in pair["key"]] for row in headers.to_pylist()], headers.type)
    return _replaced(batch, "headers", kept)


def _first(batch: pa.RecordBatch, rows: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> int:
    return int(column(batch, "offset")[int(np.argmax(rows))])


def _replaced(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    at = batch.schema.names.index(name)
    return pa.RecordBatch.from_arrays(
        [values if n == at else batch.column(n) for n in range(batch.num_columns)], schema=batch.schema
    )

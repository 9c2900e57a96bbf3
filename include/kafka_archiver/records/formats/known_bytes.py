"""Checks that the installed libraries write the bytes that this release promises.

Two versions of a compressor may both be correct and write different bytes. A retry on another machine would then write
other bytes for the same plan. So a process that plans or writes first encodes fixed records and compares checksums.
"""

import hashlib
import platform
import socket
from functools import cache
from importlib import import_module

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.model.settings import Content, Settings
from kafka_archiver.records.formats import dead_letter
from kafka_archiver.records.formats.base import RECORD, SCHEMAS, Target
from kafka_archiver.records.formats.registry import get_format, resolve
from kafka_archiver.records.formats.shared.columns import VALUE_DECODED, schema_of, shaped
from kafka_archiver.records.vectors import binaries, numbers

# The libraries that write the bytes, and the versions that give the known checksums (tested on x86-64).
_RIGHT = {
    "zstandard": ("0.24.0", "0.25.0"),
    "isal": ("1.7.2", "1.8.0", "1.9.0", "1.9.1"),
    "pyarrow": ("22.0.0", "23.0.0", "24.0.0", "25.0.0", "26.0.1"),
    "brotli": ("1.1.0", "1.2.0", "1.2.1"),
    "cramjam": ("2.14.0",),
    "orjson": ("3.10.0", "3.11.0", "3.13.0"),
}
_ROWS = 2000


def require_known_bytes(settings: Settings, dead_letters: bool = False) -> None:
    """Check the libraries that will write the objects; takes a few milliseconds, once a process.

    :param dead_letters: the run may write dead letters too.
    :raises PermanentError: the libraries write other bytes than this release promises.
    """
    for checked_settings in (settings, dead_letter.SETTINGS) if dead_letters else (settings,):
        _require(checked_settings.format, checked_settings.codec, checked_settings.content)


@cache
def _require(format_name: str, codec: str, content: Content) -> None:
    chosen = get_format(format_name)
    known = chosen.known.get(f"{codec}-{content if content in chosen.contents else 'both'}")
    if known is None or known == hashlib.md5(_object(format_name, codec, content), usedforsecurity=False).hexdigest():
        return
    versions = {name: _version(name) for name in chosen.libraries[codec]}
    strange = [
        f"found {name} {version}, expected one of {', '.join(_RIGHT[name])}"
        for name, version in versions.items()
        if version not in _RIGHT.get(name, (version,))
    ]
    why = "; ".join(strange) or (
        f"found {', '.join(map(' '.join, versions.items()))}, which are the right versions elsewhere: the cause is "
        f"their build, or this kind of machine ({platform.machine()})"
    )
    raise PermanentError(
        f"Python on {socket.gethostname()} does not write the bytes of this release for format {format_name}, codec "
        f"{codec}: {why}. Install the versions of requirements.txt on the Spark executors and where the driver runs. "
        "Nothing was written: a run with two encodings cannot be repeated"
    )


def _version(library: str) -> str:
    """Modules of the standard library have the version of Python."""
    return getattr(import_module(library), "__version__", platform.python_version())


def _object(format_name: str, codec: str, content: Content) -> bytes:
    """An object of fixed records, enough for two slices of text. A content that needs decoded values has typed ones."""
    plain = content in get_format(format_name).contents
    settings = resolve(Settings(format=format_name, codec=codec, content=content), decoded=not plain)
    if plain:
        schema, records = SCHEMAS[content], _records(content)
    else:
        value = _decoded(_records("record"))
        schema = schema_of("value", value=value.schema.field(VALUE_DECODED))
        records = shaped(value, schema)
    target = Target(topic="vectors", partition=1, key="vectors", settings=settings, schema=schema)
    encoder = get_format(format_name).encoder(target)
    pieces = [*encoder.write(records), *encoder.finish()]
    return b"".join(map(bytes, pieces))


def _decoded(records: pa.RecordBatch) -> pa.RecordBatch:
    """Columns of several types, as if the records' values were decoded."""
    offsets, times = records.column("offset"), records.column("timestamp")
    columns = {
        "id": offsets,
        "rate": offsets.cast(pa.float64()),
        "price": offsets.cast(pa.decimal128(19, 0)),
        "at": times.cast(pa.timestamp("ms", "UTC")),
        "name": records.column("key").cast(pa.string()),
        "items": records.column("headers"),
    }
    value = pa.StructArray.from_arrays(list(columns.values()), list(columns))
    return pa.record_batch([value], [VALUE_DECODED])


def _records(content: Content) -> pa.RecordBatch:
    noise = hashlib.shake_256(b"kafka-archiver").digest(8 * _ROWS)
    table = np.frombuffer(noise, "<u4").reshape(-1, 2).astype(np.int64)
    form = b'{"id":%d,"customer":"customer %d","amount":%d.%02d,"state":"%s","note":"%s"}'
    words = [noise[i : i + 2 + i % 7].hex().encode() for i in range(300)]
    values = [
        form % (n, m % 500, n % 9973, m % 100, words[m % 5], b" ".join(words[n % 290 : n % 290 + n % 9]))
        for n, m in table.tolist()
    ]
    values[-3:] = [b'"%s"' % noise.hex().encode(), b'"%s"' % (b"a" * 50_000), b""]
    offsets = numbers(np.cumsum(1 + table[:, 0] % 3))
    times = numbers(1_763_700_000_000 + table[:, 1] % 3_600_000)
    if content == "value":
        return pa.record_batch([offsets, times, binaries(values)], ["offset", "timestamp", "value"])
    # Binary values and nulls too.
    values[-1] = noise
    columns = {
        "offset": offsets,
        "timestamp": times,
        "timestamp_type": pa.array((table[:, 0] % 2).astype(np.int32)),
        "key": pa.array([words[m % 300] if m % 10 else None for m in table[:, 1].tolist()], pa.binary()),
        "value": pa.array([value if n % 50 else None for n, value in enumerate(values, 1)], pa.binary()),
        "headers": pa.array(
            [[{"key": f"h{k % 3}", "value": words[k] if k % 4 else None} for k in range(n % 3)] for n in range(_ROWS)],
            RECORD.field("headers").type,
        ),
    }
    return pa.RecordBatch.from_pydict(columns)

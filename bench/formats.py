"""python -m bench.formats: every format and decoder in this process, without Kafka, beside references of the same run.

Encoders: CPU of each format's default codec per byte of the same records as JSON lines, beside `jsonl` with gzip of
values as they are. Decoders: records per CPU second, beside Confluent's deserializers, which make Python objects.
"""

import argparse
import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bench.orders import Kind, kinds
from bench.records import START
from kafka_archiver.model.settings import Content, Settings
from kafka_archiver.records.decode.base import Decoder, DecoderInput
from kafka_archiver.records.decode.decoders import decoder
from kafka_archiver.records.formats.base import HEADERS, SCHEMAS, Target, is_typed
from kafka_archiver.records.formats.registry import get_format, names, resolve
from kafka_archiver.records.formats.shared.columns import VALUE_DECODED, schema_of, shaped

# Distinct orders: more than the windows of the compressors hold, and enough for a whole row group.
POOL = 50_000
# Turns of a decoder and Confluent's; the medians count.
TURNS = 3
# Records that Confluent's deserializers read.
SAMPLE = 2_000
# About as many as a block of the writer has.
BATCH = 10_000
# At most so many times the CPU per byte of jsonl with gzip.
MOST = 3
# At least so many times the records per CPU second of Confluent's deserializer.
WANTED = {"avro": 3, "protobuf": 8, "json_schema": 20}


class Measured(NamedTuple):
    """CPU seconds of all calls, bytes by which the process's peak grew, and what the last call returned."""

    cpu: float
    memory: int
    size: int


def measured(run: Callable[[], int], times: int) -> Measured:
    """The cost of so many calls; one before them warms up."""
    run()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before, began = _peak(), time.process_time()
    size = [run() for _ in range(times)][-1]
    return Measured(time.process_time() - began, _peak() - before, size)


def _peak() -> int:
    match = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    return int(match[1]) << 10 if match else 0


def batches_of(values: list[bytes], decode: Decoder | None = None) -> list[pa.RecordBatch]:
    """Records with these values, decoded too."""
    batches = []
    for start in range(0, len(values), BATCH):
        some = pa.array(values[start : start + BATCH], pa.binary())
        numbers = np.arange(start, start + len(some))
        columns = {
            "offset": pa.array(numbers),
            "timestamp": pa.array(START + numbers),
            "timestamp_type": pa.array(np.zeros(len(some), np.int32)),
            "key": pa.array([b"customer-%d" % n for n in numbers.tolist()], pa.binary()),
            "value": some,
            "headers": pa.array([[{"key": "trace", "value": b"%016x" % n}] for n in numbers.tolist()], HEADERS),
        }
        if decode:
            columns[VALUE_DECODED] = column_of(decode, some)
        batches.append(pa.RecordBatch.from_pydict(columns))
    return batches


def target_of(name: str, content: Content, codec: str = "", value: pa.Field | None = None) -> Target:
    """An object. :param value: the decoded value; None: bytes."""
    settings = resolve(Settings(format=name, content=content, codec=codec), decoded=value is not None)
    schema = SCHEMAS[content] if value is None else schema_of(content, value=value)
    return Target(topic="orders", partition=0, key="orders", settings=settings, schema=schema)


def written(target: Target, batches: Iterable[pa.RecordBatch]) -> int:
    """The size of the object of these records."""
    encoder, schema = get_format(target.settings.format).encoder(target), target.schema
    shape = shaped if is_typed(schema) else lambda batch, _: batch
    pieces = (len(piece) for batch in batches for piece in encoder.write(shape(batch, schema)))
    return sum(pieces) + sum(map(len, encoder.finish()))


def encoders(avro: Kind, json: Kind, times: int) -> Iterator[str]:
    """A line for each format and content with its default codec."""
    decode = _decoder(avro)
    raw, typed = batches_of([value[5:] for value in json.values]), batches_of(avro.values, decode)
    best = 0.0
    for name in sorted(names(), key=lambda name: (name != "jsonl", name)):
        format_ = get_format(name)
        cases = [(content, raw, None) for content in sorted(format_.contents, reverse=True)]
        cases += [(content, typed, decode.field) for content in sorted(format_.typed, reverse=True)]
        for content, batches, value in cases:
            cost = measured(partial(written, target_of(name, content, "", value), batches), times)
            lines = written(target_of("jsonl", content, "none", value), batches)
            nanoseconds = cost.cpu / times / lines * 1e9
            best = best or nanoseconds
            yield (
                f"{name:11} {content:7} {'columns' if value else 'bytes':8} {lines / POOL:5.0f} "
                f"{cost.cpu / times / POOL * 1e6:8.2f} {nanoseconds:8.2f} {nanoseconds / best:6.2f} "
                f"{cost.size / 1e6:7.2f} {cost.memory >> 20:4}{'  above' if nanoseconds > MOST * best else ''}"
            )


def decoders(pool: list[Kind], times: int) -> Iterator[str]:
    """A line for each decoder: to Arrow columns, and to Parquet, beside Confluent's."""
    for kind in pool:
        arrays = [pa.array(kind.values[start : start + BATCH], pa.binary()) for start in range(0, POOL, BATCH)]
        runs = (
            partial(_each, kind.confluent, kind.values[:SAMPLE]),
            partial(_columns, _decoder(kind), arrays),
            partial(_to_parquet, _decoder(kind), arrays),
        )
        turns = [[measured(run, times) for run in runs] for _ in range(TURNS)]
        confluent, columns, parquet = (median(cost.cpu for cost in costs) / times for costs in zip(*turns, strict=True))
        rate = SAMPLE / confluent
        yield (
            f"{kind.decoder:11} {sum(map(len, kind.values)) / POOL:5.0f} {rate:12,.0f}"
            + "".join(f"{POOL / cpu:12,.0f} {POOL / cpu / rate:6.1f}" for cpu in (columns, parquet))
            + f" {WANTED[kind.decoder]:6} {max(turn[-1].memory for turn in turns) >> 20:6}"
        )


def _each(decode: Callable[[bytes], object], values: list[bytes]) -> int:
    return len([decode(value) for value in values])


def column_of(decode: Decoder, values: pa.Array) -> pa.Array:
    """The decoded column. A record that is refused would cost less than one that is decoded."""
    column, reasons, _ = decode.decode(values)
    if reasons:
        raise RuntimeError(f"{len(reasons)} of {len(values)} records are not decoded: {next(iter(reasons.values()))}")
    return column


def _columns(decode: Decoder, arrays: list[pa.Array]) -> int:
    return sum(len(column_of(decode, values)) for values in arrays)


def _to_parquet(decode: Decoder, arrays: list[pa.Array]) -> int:
    batches = (pa.record_batch([column_of(decode, values)], [VALUE_DECODED]) for values in arrays)
    return written(target_of("parquet", "value", "", decode.field), batches)


def _decoder(kind: Kind) -> Decoder:
    return decoder(kind.decoder, DecoderInput(kind.schema, {1: kind.schema}, framed=True, column=VALUE_DECODED))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.formats", description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=5, help=f"how often each writes {POOL:,} orders (default 5)")
    times = parser.parse_args().times
    measured = [*kinds(POOL)]
    print("decoder     bytes  confluent/s   columns/s  ratio   parquet/s  ratio wanted    MiB")
    for line in decoders(measured, times):
        print(line, flush=True)
    print("\nformat      content of       bytes  CPU s/M  ns/byte  ratio  MB out  MiB")
    for line in encoders(measured[0], measured[2], times):
        print(line, flush=True)


if __name__ == "__main__":
    main()

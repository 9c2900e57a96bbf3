"""`airflow archive get`: one record by its offset, or some from there on."""

import re
import sys
from argparse import Namespace
from dataclasses import replace

import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.cli.find import find_archive
from kafka_archiver.orchestration.cli.print_object import data_out
from kafka_archiver.orchestration.connections import open_ledger
from kafka_archiver.orchestration.terminal.failures import plainly
from kafka_archiver.reader.lines import json_lines
from kafka_archiver.reader.lookup import Lookup
from kafka_archiver.reader.metered import Metered
from kafka_archiver.values.ranges import TopicPartition

_PLACE = re.compile(r"(?P<topic>[^+@]+)\+(?P<partition>\d{1,10})@(?P<offset>\d{1,19})")


@plainly
def get_records(args: Namespace) -> None:
    """Print the records."""
    name, offset = place_of(args.record)
    ledger = open_ledger(find_archive(args.archive))
    store = Metered(ledger.store)
    lookup = Lookup(replace(ledger, store=store), name, args.generation)
    try:
        with data_out() as out:
            for number, batch in enumerate(lookup.records(offset, args.count)):
                out.write(_raw(batch, number) if args.output == "raw" else json_lines(batch, name))
    finally:
        print(f"read {store.objects} of objects, and {store.ledger} of the ledger", file=sys.stderr)


def place_of(text: str) -> tuple[TopicPartition, int]:
    """Return the partition and the offset of `orders+3@12345`.

    :raises ConfigError: it is something else.
    """
    match = _PLACE.fullmatch(text)
    if match is None:
        raise ConfigError(f"expected topic, partition and offset like orders+3@12345, found {text!r}")
    return TopicPartition(match["topic"], int(match["partition"])), int(match["offset"])


def _raw(batch: pa.RecordBatch, number: int) -> bytes:
    """Return the values as they are, with a line break between two."""
    if "value" not in batch.schema.names or not pa.types.is_binary(batch.schema.field("value").type):
        raise ConfigError(
            f"the archive stores the columns {', '.join(batch.schema.names)} and not the bytes of values: use "
            "`--output json`"
        )
    return b"\n" * bool(number) + b"\n".join(value or b"" for value in batch.column("value").to_pylist())

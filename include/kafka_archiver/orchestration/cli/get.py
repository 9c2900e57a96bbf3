"""`airflow archive get`: one record by its offset, or some from there on."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.cli.completion import ARCHIVE
from kafka_archiver.orchestration.terminal.options import option, positive
from kafka_archiver.orchestration.terminal.output import report_errors
from kafka_archiver.orchestration.terminal.stdout import data_stream

if TYPE_CHECKING:
    import pyarrow as pa

GET = ActionCommand(
    name="get",
    help="One record by its offset, or some from there on",
    description="""\
Print the record at an offset, as in: airflow archive get orders orders+3@12345. The ledger finds the object, without a
listing: by the plans of the line, of which it reads the logarithm of their number. Of an object with an index
(block_gzip) it reads one range, of Parquet the footer and one row group, of every other object all, which is compared
with its checksum first. Only committed runs count, of each the highest revision. Of an encrypted archive the connection
has the master key.

If the archive has no such record, the error says what became of it: filtered, lost, a dead letter, or absent in Kafka.

json: each record as a line of JSON, as `airflow archive print` prints it. raw: the values as they are, a line break
between two. stderr says how many bytes were read, in how many requests.

The exit code is 0, or 1 with the reason on stderr: after damage, some records may have been printed.""",
    func=lazy_load_command(f"{__name__}.get_records"),
    args=(
        ARCHIVE,
        option("record", metavar="TOPIC+PARTITION@OFFSET", help="As in orders+3@12345"),
        option(
            "-n", "--count", type=positive, default=1, metavar="N", help="How many records from there on (default: 1)"
        ),
        option(
            "--generation",
            type=int,
            metavar="G",
            help="Of a log that was made anew: which one (default: the newest that has the offset)",
        ),
        option(
            "-o",
            "--output",
            choices=("json", "raw"),
            default="json",
            metavar="json|raw",
            help="json: whole records (default); raw: values alone",
        ),
    ),
)


@report_errors
def get_records(args: Namespace) -> None:
    """Print the records."""
    from kafka_archiver.orchestration.cli.names import find_archive
    from kafka_archiver.orchestration.connections import open_ledger
    from kafka_archiver.reader.lookup import Lookup, json_lines, record_place
    from kafka_archiver.reader.metered import Metered

    name, offset = record_place(args.record)
    ledger = open_ledger(find_archive(args.archive))
    store = Metered(ledger.store)
    lookup = Lookup(replace(ledger, store=store), name, args.generation)
    try:
        out = data_stream().buffer
        for number, batch in enumerate(lookup.records(offset, args.count)):
            out.write(_raw(batch, number) if args.output == "raw" else json_lines(batch, name))
    finally:
        print(f"read {store.objects} of objects, and {store.ledger} of the ledger", file=sys.stderr)


def _raw(batch: pa.RecordBatch, number: int) -> bytes:
    """Return the values as they are, with a line break between two."""
    import pyarrow as pa

    if "value" not in batch.schema.names or not pa.types.is_binary(batch.schema.field("value").type):
        raise ConfigError(
            f"the archive stores the columns {', '.join(batch.schema.names)} and not the bytes of values: use "
            "`--output json`"
        )
    return b"\n" * bool(number) + b"\n".join(value or b"" for value in batch.column("value").to_pylist())

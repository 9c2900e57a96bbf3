"""The commands about encryption before the store."""

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.definition.common import ALL, ANSWER, HERE, YES
from kafka_archiver.orchestration.terminal.options import OUTPUT, option

DECRYPT = ActionCommand(
    name="decrypt",
    help="The content of one encrypted object, as its format has it",
    description="""\
Write the content of an object that was encrypted before it was sent (store.encryption: {client: …}) to the standard
output, as in: airflow archive decrypt s3://…/orders+0+00000000000000000000.parquet.enc > orders.parquet

The object: an s3:// URL below an archive's store.url, or a local file. Its data key is in the ledger of the archive
that wrote it, and that archive's connection has the master key.

The exit code is 0, or 1 if the object is damaged or its key is not known; what was written until then is not all.""",
    func=lazy_load_command(f"{HERE}.print_object.decrypt"),
    args=(option("object", metavar="OBJECT", help="An s3:// URL, or a local file"),),
)

ROTATE_KEYS = ActionCommand(
    name="rotate-keys",
    help="Wrap the data keys by the present master key",
    description=f"""\
After a change of the master key (store.encryption.client): unwrap each data key by the master key that has wrapped it,
and wrap it by the present one. Neither objects nor plans change. The earlier master key must still be known
(`previous_secrets` in the extra of the connection); once this command has succeeded, remove it there. Runs may be at
work meanwhile. May be repeated after a failure.

json and yaml: a list of {{archive, data_key, result (wrapped anew, to be wrapped anew, or as before)}}.
{ANSWER}""",
    func=lazy_load_command(f"{HERE}.rotate_keys.rotate_keys"),
    args=(ALL, option("-n", "--dry-run", action="store_true", help="Only list"), YES, OUTPUT),
)

"""Write a sidecar again from its object, for records that Kafka does not have any more."""

from collections.abc import Collection, Iterator
from contextlib import closing

import pyarrow as pa

from kafka_archiver.context.archive_context import Context
from kafka_archiver.encryption import Sealer
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.data_keys import DataKey
from kafka_archiver.model.manifest import Manifest, ObjectEntry
from kafka_archiver.model.plan import Plan
from kafka_archiver.records.formats import get_format
from kafka_archiver.records.formats.base import HasSidecar
from kafka_archiver.records.reading.files import fetch_from
from kafka_archiver.records.reading.opener import missing, open_object
from kafka_archiver.records.reading.targets import offsets_of, target_of
from kafka_archiver.records.vectors import numbers
from kafka_archiver.records.writer.disk import LateDirectory
from kafka_archiver.records.writer.upload import PartStream, Sender
from kafka_archiver.store import Store
from kafka_archiver.store.object_check import is_there
from kafka_archiver.values.checksum import crc32, spelt
from kafka_archiver.values.columns import Int64s
from kafka_archiver.work.archive.publish import refuse_closed_intent
from kafka_archiver.work.archive.replay import retake_intent


def write_sidecars(context: Context, run: str, keys: Collection[str]) -> None:
    """Write sidecars of a run again, with the bytes that its manifest promises.

    :raises IntegrityError: an object does not give these bytes any more.
    :raises PermanentError: another run has taken this one's place.
    """
    plan, manifest = context.ledger.plan(run), context.ledger.sound_manifest(run)
    if plan is None or manifest is None:
        raise IntegrityError(f"run {run} has no plan or no manifest any more")
    refuse_closed_intent(context.ledger.intent(run).document)
    with closing(LateDirectory(None)) as directory, Sender(context.store, 1) as sender:
        uploads = []
        for entry in manifest.sidecars:
            if entry.key in keys:
                writer = context.ledger.writer_of(plan, entry.key)
                key = context.ledger.open_key(writer.data_key) if writer.data_key else None
                data = sidecar_bytes(context.store, writer, manifest, entry, key)
                if data is None:
                    raise IntegrityError(f"{entry.sidecar_of} does not give the bytes of {entry.key} any more")
                # As the run's attempts did: so a store whose ETags are MD5s gives the same ETag.
                parts = PartStream(sender.new(entry.key), plan.settings.part_bytes, directory)
                parts.put([data])
                parts.finish()
                uploads.append(parts.uploaded())
        # Behind that, a run that replaces this one aborts these uploads before it removes objects.
        retake_intent(context.ledger, plan, manifest)
        for upload in uploads:
            context.store.complete_upload(upload)


def sidecar_bytes(
    store: Store, plan: Plan, manifest: Manifest, entry: ObjectEntry, key: DataKey | None
) -> bytes | None:
    """Return a sidecar's bytes, from its object; None if the object does not give the bytes that the manifest promises.

    :param key: the data key of the plan, if it has one.
    """
    whole = next((o for o in manifest.objects if o.key == entry.sidecar_of), None)
    if whole is None or not is_there(store, whole):
        return None
    target = target_of(whole, plan, {})
    encoder = get_format(target.settings.format).encoder(target)
    offsets = offsets_of(manifest, whole)
    if not isinstance(encoder, HasSidecar) or (target.settings.content == "value" and offsets is None):
        return None

    def find_key(_: str) -> DataKey:
        assert key, "the object is not encrypted"
        return key

    batches = open_object(whole, target, fetch_from(store, whole.key, missing), find_key)
    for batch in _with_offsets(batches, offsets):
        encoder.write(batch)
    for _ in encoder.finish():
        pass
    data = encoder.sidecar()
    if key:
        sealer = Sealer(key, entry.key)
        data = b"".join([*sealer.update([data]), *sealer.finish()])
    return data if spelt(crc32(data)) == entry.checksum else None


def _with_offsets(batches: Iterator[pa.RecordBatch], offsets: Int64s | None) -> Iterator[pa.RecordBatch]:
    """Yield batches of values with a column of offsets; batches of records as they are."""
    row = 0
    for batch in batches:
        if "offset" in batch.schema.names or offsets is None:
            yield batch
        else:
            own = numbers(offsets[row : row + batch.num_rows])
            yield pa.RecordBatch.from_arrays([own, *batch.columns], ["offset", *batch.schema.names])
            row += batch.num_rows

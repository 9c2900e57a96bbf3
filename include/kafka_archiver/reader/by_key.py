"""One object by its key, as the plan that wrote it says."""

from collections.abc import Iterator

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.object_keys import is_dead_letter, run_name, split_object_key
from kafka_archiver.reader.chunks import OFFSET, Written
from kafka_archiver.reader.runs import Plans
from kafka_archiver.records.formats.base import Buffer
from kafka_archiver.records.formats.jsonl.objects import lines_of
from kafka_archiver.records.reading.object_copies import Copies
from kafka_archiver.values.ranges import TopicPartition


def written_at(ledger: Ledger, key: str) -> tuple[Written, ObjectEntry] | None:
    """Return the run that wrote an object of records, and the object's entry; None: the ledger does not tell.

    :param key: its name has topic, partition and chunk; with another template of names the ledger is not searched.
    """
    place = split_object_key(key)
    if place is None or is_dead_letter(key):
        return None
    plan = Plans(ledger).with_offset(TopicPartition(place.topic, place.partition), place.start, place.generation)
    run = plan and run_name(plan.interval.id, place.revision)
    effective, manifest = (ledger.plan(run), ledger.sound_manifest(run)) if run else (None, None)
    if effective is None or manifest is None:
        return None
    written = Written(ledger, effective, manifest)
    return next(((written, entry) for entry in manifest.objects if entry.key == key), None)


def lines(written: Written, entry: ObjectEntry) -> Iterator[Buffer]:
    """Yield the records of an object as lines of JSON, as `format: jsonl` writes them; values alone as they are.

    :raises IntegrityError: the object is missing or damaged; nothing was yielded.
    """
    target = written.target(entry)
    encode = lines_of(target)
    with Copies() as copies:
        for batch in written.whole(entry, copies):
            yield from encode(batch.drop_columns([OFFSET.name]), target)

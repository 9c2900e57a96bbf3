"""List the folder of another tool once, and freeze the listing until all of its objects are read."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, TransientError
from kafka_archiver.model.adopted import AdoptedListing, AdoptionBegun, LeftOut, ListedObject, Tool
from kafka_archiver.model.object_keys import is_reserved
from kafka_archiver.store import Store
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.adopt.names import Ignored, parsed

_PART, _EXAMPLES = 500, 20


@dataclass(slots=True)
class Preview:
    """Objects and bytes of each partition; how many keys would be left out, by reason, and some of them."""

    objects: Counter[TopicPartition] = field(default_factory=Counter)
    bytes: Counter[TopicPartition] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    examples: list[LeftOut] = field(default_factory=list)


def preview(store: Store, folder: str, tool: Tool, topic: str | None) -> Preview:
    """List the folder, and parse its keys."""
    outlook = Preview()
    for item in listed(store, folder):
        named = parsed(tool, item.key, topic)
        if isinstance(named, Ignored):
            outlook.left_out[named.reason] += 1
            if len(outlook.examples) < _EXAMPLES:
                outlook.examples.append(LeftOut(key=item.key, reason=named.reason))
        else:
            name = TopicPartition(named.topic, named.partition)
            outlook.objects[name] += 1
            outlook.bytes[name] += item.bytes
    return outlook


def listed(store: Store, folder: str) -> Iterator[ListedObject]:
    """Yield the objects below a folder, without those of the archiver's own folders, and what stands for a folder."""
    for stat in store.list(folder):
        is_folder = not stat.size and stat.key.endswith("/")
        if not is_folder and not is_reserved(stat.key) and "/_ledger/" not in stat.key:
            yield ListedObject(key=stat.key, bytes=stat.size, etag=stat.etag)


def frozen_listing(ledger: Ledger, folder: str, tool: Tool, topic: str | None, moment: datetime) -> AdoptionBegun:
    """Return the listing that this adoption goes by: that of an attempt before it, or a new one.

    :raises ConfigError: another adoption has begun.
    """
    begun = ledger.adoption_begun()
    if begun is None:
        digests: list[str] = []
        objects = listed(ledger.store, folder)
        while some := tuple(islice(objects, _PART)):
            part = AdoptedListing(archive=ledger.archive, number=len(digests), objects=some)
            ledger.put_listing(part)
            digests.append(part.digest)
        begun = AdoptionBegun(
            archive=ledger.archive, tool=tool, folder=folder, topic=topic, begun_at=moment, digests=tuple(digests)
        )
        if not ledger.create_begun(begun):
            raise TransientError(f"another process has begun to adopt objects for {ledger.archive}: run it again")
    if (begun.tool, begun.folder, begun.topic) != (tool, folder, topic):
        topic_of = f" --topic {begun.topic}" if begun.topic else ""
        raise ConfigError(
            f"archive {ledger.archive} has begun to adopt {begun.folder} of {begun.tool}: end it with "
            f"airflow archive adopt {ledger.store.url}/{begun.folder} --from {begun.tool}{topic_of} "
            f"--archive {ledger.archive}, or give another --archive"
        )
    return begun


def part_of(ledger: Ledger, begun: AdoptionBegun, number: int) -> AdoptedListing:
    """Return a part of the listing.

    :raises ConfigError: another process has listed the folder at the same time.
    """
    part = ledger.adopted_listing(number)
    if part is None or part.digest != begun.digests[number]:
        raise ConfigError(
            f"part {number} of the listing of {begun.folder} is gone or of another attempt. Nothing is adopted yet: "
            f"remove {ledger.store.url}/_ledger/{ledger.archive}/adopted/work/ and adopt again"
        )
    return part

"""Look at an adoption by the listing alone: nothing is read, and nothing is written."""

from collections import Counter
from dataclasses import dataclass, field

from kafka_archiver.model.adopted import LeftOut, Tool
from kafka_archiver.store import Store
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.adopt.listing import listed
from kafka_archiver.work.adopt.names import PARSERS, Ignored

_EXAMPLES = 20


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
        named = PARSERS[tool](item.key, topic)
        if isinstance(named, Ignored):
            outlook.left_out[named.reason] += 1
            if len(outlook.examples) < _EXAMPLES:
                outlook.examples.append(LeftOut(key=item.key, reason=named.reason))
        else:
            name = TopicPartition(named.topic, named.partition)
            outlook.objects[name] += 1
            outlook.bytes[name] += item.bytes
    return outlook

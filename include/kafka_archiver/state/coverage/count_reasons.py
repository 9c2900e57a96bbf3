"""Why records of an hour are dead letters: the reasons of the first letters, counted."""

import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.keys import SEALED
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.records.formats.dead_letter import reasons
from kafka_archiver.store import Store
from kafka_archiver.values.documents import Value

# Objects that are read, and of each the bytes that are read and that these become. An encrypted object is not read.
OBJECTS, READ, TEXT = 5, 1 << 18, 1 << 22
# Reasons that are named, and letters of one that are shown.
SHOWN, LONG = 10, 300
_NUMBER = re.compile(r"\d+")


class Reason(Value):
    """A reason, and how many of the letters that were read have it. `text`: that of the first; numbers may differ."""

    text: str
    letters: int


def reasons_of(store: Store, letters: Sequence[ObjectEntry]) -> tuple[Reason, ...]:
    """Read the reasons of the first letters, the most frequent first. At most OBJECTS requests."""
    keys = [entry.key for entry in letters if not entry.key.endswith(SEALED) and entry.sidecar_of is None][:OBJECTS]
    counted: Counter[str] = Counter()
    first_texts: dict[str, str] = {}
    with ThreadPoolExecutor(OBJECTS) as pool:
        for object_reasons in pool.map(lambda key: _reasons(store, key), keys):
            for reason in object_reasons:
                kind = _NUMBER.sub("#", reason)
                counted[kind] += 1
                first_texts.setdefault(kind, reason)
    return tuple(Reason(text=first_texts[kind][:LONG], letters=count) for kind, count in counted.most_common(SHOWN))


def _reasons(store: Store, key: str) -> list[str]:
    head = store.read(key, 0, READ)
    try:
        return list(reasons(head, TEXT)) if head else []
    except IntegrityError:
        # The audit says what is wrong with it.
        return []

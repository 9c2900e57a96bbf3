"""The offsets of an object's rows, by its name, its neighbours' names and the number of its rows. Pure.

A number in a name is the offset of one row. The file before or behind bounds the others: only if there is room for no
other record between the two names does each row have its offset. Nothing is counted on from a name alone, because
compaction and transactions leave gaps that no name shows.
"""

from collections.abc import Iterable, Iterator

from kafka_archiver.model.adopted import AdoptedObject, Known, ReadObject

# What reading an object has told of more than its offsets.
_SHARED = {*ReadObject.model_fields} & {*AdoptedObject.model_fields}


def placed(chain: Iterable[ReadObject]) -> Iterator[AdoptedObject]:
    """Yield the objects of a chain with what is known of their rows' offsets.

    :param chain: in the order of their numbers.
    """
    before: int | None = None
    same: list[ReadObject] = []
    for item in chain:
        if same and item.number != same[0].number:
            yield from (_placed(item_of, before, item.number) for item_of in same)
            before, same = same[0].number, []
        same.append(item)
    yield from (_placed(item_of, before, None) for item_of in same)


def _placed(item: ReadObject, before: int | None, after: int | None) -> AdoptedObject:
    """:param before, after: the numbers of the files before and behind it; None: there is none."""
    if item.low is not None and item.high is not None:
        return _object(item, "each", item.low, item.high, has_offsets=True)
    number = item.number or 0
    if item.of == "first":
        first, last = number, None if after is None else after - 1
    else:
        # Without a file before it, its rows may begin anywhere from offset 0 on.
        first, last = (0 if before is None else before + 1), number
    if last is None:
        room, least = None, first + item.rows - 1
    else:
        room, least = last - first + 1, last
    is_single = item.rows == 1 and item.format != "joined"
    if is_single:
        return _object(item, "each", number, number)
    if room is not None and item.rows == room and (item.counts or room == 1):
        return _object(item, "each", first, least)
    bounded = room is not None and (item.rows <= room or not item.counts) and (item.of == "first" or before is not None)
    if bounded:
        return _object(item, "within", first, least)
    return _object(item, item.of, number, number)


def _object(item: ReadObject, offsets: Known, first: int, last: int, has_offsets: bool = False) -> AdoptedObject:
    shared = item.model_dump(include=_SHARED)
    return AdoptedObject(first_offset=first, last_offset=last, offsets=offsets, has_offsets=has_offsets, **shared)


def copy_of(item: AdoptedObject, other: AdoptedObject) -> str | None:
    """Return why an object is left out beside another one of the same partition that comes before it; None: it stays.

    Objects come in the order of their first offsets, of equal ones the longest first.
    """
    same_span = (item.first_offset, item.last_offset) == (other.first_offset, other.last_offset)
    if same_span and (item.checksum, item.bytes) == (other.checksum, other.bytes):
        return f"the same bytes and offsets as {other.key}"
    without_gaps = all(o.offsets == "each" and not o.has_offsets for o in (item, other))
    if without_gaps and other.first_offset <= item.first_offset and item.last_offset <= other.last_offset:
        return f"all of its offsets are in {other.key}"
    return None

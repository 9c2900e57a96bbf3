"""The mappers of the model test. What they do depends on the number in the record's value."""

import asyncio
import re
from collections.abc import Iterable

from kafka_archiver.mapper import Record


def split(record: Record) -> Iterable[Record]:
    """Nothing, an error, one row or two."""
    digits = re.search(rb"\d+", record.value or b"")
    number = int(digits[0]) if digits else 0
    if number % 11 == 3:
        raise ValueError(f"no {number}")
    if number % 5 == 4:
        return
    yield record.replace(value=record.value and record.value.replace(b"{", b'{"m": 1, '))
    if number % 3 == 1:
        yield record.replace(value=record.value and record.value.replace(b'"g": "x"', b'"g": "y"'), key=b"twin")


async def split_later(record: Record) -> list[Record]:
    """The same; the later a record is, the earlier it is done."""
    for _ in range(20 - record.offset % 20):
        await asyncio.sleep(0)
    return list(split(record))


def in_a_list(record: Record) -> Record:
    """Return what a column of the values cannot hold."""
    return record.replace(value=[record.value])

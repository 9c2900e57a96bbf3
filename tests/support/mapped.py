"""The mappers of the model test. What they do depends on the number in the record's value."""

import asyncio
import re
from collections.abc import Iterable, Sequence

from kafka_archiver.mapper import Record
from kafka_archiver.records.pipeline.transform.code import digest_of


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


# Digests of the mappers' code, that of today first. Empty: what the code really has.
_digests = [""]


def put_code(digest: str) -> None:
    """Let the mappers have other code, which does the same."""
    _digests.insert(0, digest)


def put_back(digest: str) -> None:
    """Let the code be as it was, by the first digits of its digest."""
    _digests.insert(0, next((known for known in _digests if known.startswith(digest)), ""))


def digest_now(function: str, modules: Sequence[str]) -> str:
    """Return what the model has in the place of `digest_of`."""
    return _digests[0] or digest_of(function, modules)

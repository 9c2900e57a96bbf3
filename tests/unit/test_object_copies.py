"""Copies of objects: what is read of one is the object, wherever the copy is."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.reading import object_copies as module
from kafka_archiver.records.reading.files import Fetch, ObjectCopy
from kafka_archiver.records.reading.object_copies import Copies
from kafka_archiver.values.checksum import crc32, spelt

pytestmark = pytest.mark.unit


def entry_of(data: bytes) -> Any:
    return SimpleNamespace(key="k", rows=0, bytes=len(data), checksum=spelt(crc32(data)))


def fetching(data: bytes) -> Fetch:
    return lambda start, length: data[start : start + length]


@given(st.lists(st.lists(st.binary(max_size=30), max_size=4), max_size=3), st.integers(0, 60), st.integers(1, 40))
def test_ranges_of_copies_are_those_of_the_objects(rounds: list[list[bytes]], most: int, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch, Copies() as copies:
        patch.setattr(module, "MOST_IN_MEMORY", most)
        patch.setattr(module, "PIECE", piece)
        for objects in rounds:
            copies.clear()
            fetches = [copies.add(entry_of(data), fetching(data)) for data in objects]
            for data, fetch in zip(objects, fetches, strict=True):
                assert all(fetch(s, n) == data[s : s + n] for s in range(32) for n in (0, 1, 40))
            in_memory = [f.data for f in fetches if isinstance(f, ObjectCopy) and isinstance(f.data, bytes)]
            assert sum(map(len, in_memory)) <= most


@pytest.mark.parametrize("most", [0, 100])
@pytest.mark.parametrize("stored", [b"other", b"shor", b""])
def test_another_object_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch, most: int, stored: bytes) -> None:
    monkeypatch.setattr(module, "MOST_IN_MEMORY", most)
    with Copies() as copies, pytest.raises(IntegrityError, match="k: expected 5 bytes"):
        copies.add(entry_of(b"right"), fetching(stored))

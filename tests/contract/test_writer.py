"""A chunk in a store: invisible until completed, the same ETags each time, nothing left after a failure."""

import zlib
from collections.abc import Iterator
from hashlib import md5

import pyarrow as pa
import pytest

from kafka_archiver.errors import TransientError
from kafka_archiver.store import Store
from kafka_archiver.writer.commit import abort, complete
from kafka_archiver.writer.result import Limits
from tests.support.chunks import HOUR, Row, chunk_of, cut, read_values, write

pytestmark = pytest.mark.contract

PART = 5 << 20
# 12 MB in the first hour: two whole parts and a rest; little in the others.
ROWS = [Row(i, (0 if i % 10 else i % 7) * HOUR, value=b"%d" % (10**999 + i)) for i in range(12_000)]
CHUNK = chunk_of(0, len(ROWS), "orders/ä b+c")
LINES = {"codec": "none", "part_bytes": PART}


def test_an_object_is_visible_when_the_driver_has_completed_it(store: Store) -> None:
    result = write(CHUNK, cut(ROWS, 500), store, **LINES)
    assert [len(o.upload.parts) for o in result.objects] == [3, *[1] * 6]
    assert not list(store.list(""))
    assert len(list(store.list_uploads(""))) == 7

    entries = complete([result], store)
    assert not list(store.list_uploads(""))
    assert {s.key: (s.size, s.etag) for s in store.list("")} == {e.key: (e.bytes, e.etag) for e in entries}
    for entry in entries:
        assert entry.checksum == f"crc32:{zlib.crc32(store.get(entry.key)):08x}"
        values = [row.value for row in ROWS if (row.timestamp // HOUR,) == entry.hours]
        assert store.get(entry.key).splitlines() == values
    assert complete([result], store) == entries


def test_writing_again_changes_nothing_but_etags_that_are_no_md5s(store: Store) -> None:
    chunk = chunk_of(0, 1000)
    first = complete([write(chunk, cut(ROWS[:1000], 500), store)], store)
    again = complete([write(chunk, cut(ROWS[:1000], 77), store, Limits(memory_bytes=1, open_objects=2))], store)
    known = {} if store.put("k", b"") == md5().hexdigest() else {"etag": "another each time"}
    assert [e.model_copy(update=known) for e in again] == [e.model_copy(update=known) for e in first]
    assert read_values(store.get(first[0].key))[1] == ROWS[1].value


def test_a_chunk_that_fails_leaves_nothing(store: Store) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from cut(ROWS, 500)
        assert list(store.list_uploads("")), "a part should have been sent by now"
        raise TransientError("broker gone")

    with pytest.raises(TransientError, match="broker gone"):
        write(CHUNK, failing(), store, Limits(memory_bytes=PART, upload_threads=1), **LINES)
    assert not list(store.list_uploads(""))
    assert not list(store.list(""))


def test_a_run_that_fails_leaves_nothing(store: Store) -> None:
    results = [write(chunk, cut(ROWS[:500], 500), store) for chunk in (chunk_of(0, 500), chunk_of(0, 500, "x"))]
    abort(results, store)
    assert not list(store.list_uploads(""))
    assert not list(store.list(""))


def test_a_run_whose_uploads_somebody_aborted_can_be_tried_again(store: Store) -> None:
    result = write(chunk_of(0, 500), cut(ROWS[:500], 500), store)
    abort([result], store)
    with pytest.raises(TransientError):
        complete([result], store)

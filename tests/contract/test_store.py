"""The promises of every store."""

import hashlib
import pickle
import zlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryFile
from threading import Barrier

import pytest

from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.store import PendingUpload, Store, UploadedPart
from kafka_archiver.store.azure import AzureStore
from kafka_archiver.store.base import MAX_PARTS, MIN_PART
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.store.object_check import compare
from kafka_archiver.store.retry import Backoff
from kafka_archiver.store.s3 import S3Store
from kafka_archiver.values.checksum import crc32
from tests.contract.conftest import OpenStore

pytestmark = pytest.mark.contract

SLICES = [b"a" * MIN_PART, b"b" * (MIN_PART + 1), b"c"]
STRANGE_KEYS = [
    "t/date=2026-11-21/hour=05/t+0+00000000000000000000.jsonl.gz",
    "%5Fledger/a%2Fb/%252F",
    "with space/tab\there",
    "ünï/日本語/😀",
    "a+b=c&d?e#f;g:h@i!j$k'l(m)n*o,p~q",
    'quote"and<tag>',
    "_ledger/.hidden",
]


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def keys(store: Store, prefix: str = "") -> list[str]:
    return [stat.key for stat in store.list(prefix)]


def send(store: Store, begun: PendingUpload, slices: list[bytes]) -> PendingUpload:
    parts = [store.upload_part(begun, n, data, crc32(data)) for n, data in enumerate(slices, start=1)]
    return begun._replace(parts=tuple(parts))


def upload(store: Store, key: str, slices: list[bytes] = SLICES) -> PendingUpload:
    return send(store, store.start_upload(key), slices)


def impatient(store: Store) -> Store:
    """The same store, which tries once."""
    if isinstance(store, S3Store | AzureStore):
        store._backoff = Backoff(tries=1)
    return store


def foreign_etags(store: Store) -> bool:
    return isinstance(store, AzureStore) or (isinstance(store, MemoryStore) and store._bucket.foreign_etags)


def checksums(store: Store) -> bool:
    return isinstance(store, S3Store) or (isinstance(store, MemoryStore) and store._bucket.checksums)


class TestObjects:
    def test_what_was_put_is_read_back(self, store: Store) -> None:
        etag = store.put("a/b", b"content")
        assert etag == md5(b"content") or foreign_etags(store)
        assert store.get("a/b") == b"content"

    def test_an_empty_object_is_an_object(self, store: Store) -> None:
        store.put("empty", b"")
        assert store.get("empty") == b""
        assert (stat := store.head("empty")) is not None
        assert stat.size == 0

    def test_put_replaces_what_was_there(self, store: Store) -> None:
        store.put("k", b"first, and longer")
        store.put("k", b"second")
        assert store.get("k") == b"second"
        assert keys(store) == ["k"]

    def test_some_bytes_of_an_object(self, store: Store) -> None:
        store.put("k", b"0123456789")
        assert [store.read("k", start, 4) for start in (0, 4, 8, 10)] == [b"0123", b"4567", b"89", b""]
        assert store.read("missing", 0, 4) is None

    def test_head_and_list_say_the_same(self, store: Store) -> None:
        before = datetime.now(UTC) - timedelta(seconds=2)
        etag = store.put("k", b"12345")
        stat = store.head("k")
        assert stat is not None
        assert (stat.key, stat.size, stat.etag) == ("k", 5, etag)
        assert stat.checksum == (f"crc32:{zlib.crc32(b'12345'):08x}" if checksums(store) else None)
        assert stat.modified.utcoffset() == timedelta(0)
        assert before <= stat.modified <= datetime.now(UTC) + timedelta(seconds=2)
        [listed] = store.list("")
        # A server may know fractions of a second that it has no place for in a header.
        assert listed._replace(modified=stat.modified) == stat._replace(checksum=None)
        assert listed.modified.utcoffset() == timedelta(0)

    def test_delete_removes_the_object_and_may_be_repeated(self, store: Store) -> None:
        store.put("k", b"x")
        store.delete("k")
        store.delete("k")
        assert store.get("k") is store.head("k") is None
        assert keys(store) == []

    @pytest.mark.parametrize("key", STRANGE_KEYS)
    def test_a_key_means_itself_whatever_its_characters(self, store: Store, key: str) -> None:
        store.put(key, key.encode())
        assert store.get(key) == key.encode()
        assert (stat := store.head(key)) is not None
        assert stat.key == key
        assert keys(store) == [key]
        pending = upload(store, key, [b"part"])
        assert pending.checked == checksums(store)
        assert [u[:2] for u in store.list_uploads("")] == [(key, pending.upload_id)]
        store.complete_upload(pending)
        assert store.get(key) == b"part"
        store.delete(key)
        assert keys(store) == []


class TestCreate:
    def test_create_writes_only_where_nothing_is(self, store: Store) -> None:
        assert store.create("k", b"first") is True
        assert store.create("k", b"second") is store.create("k", b"first") is False
        assert store.get("k") == b"first"

    def test_create_works_again_after_delete(self, store: Store) -> None:
        store.create("k", b"first")
        store.delete("k")
        assert store.create("k", b"second") is True

    def test_of_sixteen_racing_creators_exactly_one_wins_and_its_bytes_are_stored(self, store: Store) -> None:
        start = Barrier(16)

        def race(number: int) -> bool:
            start.wait()
            return store.create("k", f"creator {number}".encode())

        with ThreadPoolExecutor(16) as pool:
            for lap in range(2):
                won = list(pool.map(race, range(16)))
                assert won.count(True) == 1, f"lap {lap}"
                assert store.get("k") == f"creator {won.index(True)}".encode()
                store.delete("k")


class TestReplace:
    def test_a_version_is_replaced_once(self, store: Store) -> None:
        store.put("k", b"first")
        first = store.version("k")
        assert first is not None
        assert first.data == b"first"
        assert store.replace("k", b"second", first.etag) is True
        assert store.replace("k", b"third", first.etag) is False
        second = store.version("k")
        assert second is not None
        assert second.data == b"second"
        assert store.replace("k", b"third", second.etag) is True
        assert store.get("k") == b"third"

    def test_a_version_is_deleted_while_it_is_there_and_only_then(self, store: Store) -> None:
        first, second = store.put("k", b"first"), store.put("k", b"second")
        assert store.delete_version("k", first) is False
        assert store.get("k") == b"second"
        assert store.delete_version("k", second) is store.delete_version("k", second) is True
        assert store.get("k") is None

    def test_what_is_gone_is_not_replaced(self, store: Store) -> None:
        etag = store.put("k", b"first")
        store.delete("k")
        assert store.replace("k", b"second", etag) is False
        assert store.get("k") is None
        assert store.version("k") is None

    def test_of_sixteen_racing_writers_exactly_one_wins_and_its_bytes_are_stored(self, store: Store) -> None:
        start = Barrier(16)

        def race(number: int, etag: str) -> bool:
            start.wait()
            return store.replace("k", f"writer {number}".encode(), etag)

        with ThreadPoolExecutor(16) as pool:
            for lap in range(2):
                etag = store.put("k", f"lap {lap}".encode())
                won = list(pool.map(race, range(16), [etag] * 16))
                assert won.count(True) == 1, f"lap {lap}"
                assert store.get("k") == f"writer {won.index(True)}".encode()


def test_the_store_knows_what_time_it_is(store: Store) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)
    assert before <= store.now() <= datetime.now(UTC) + timedelta(seconds=2)
    assert store.now().utcoffset() == timedelta(0)


class TestList:
    def test_a_prefix_is_any_beginning_of_a_key(self, store: Store) -> None:
        for key in ("a/1", "a/2", "ab", "b"):
            store.put(key, b"")
        assert keys(store, "a") == ["a/1", "a/2", "ab"]
        assert keys(store, "a/") == ["a/1", "a/2"]
        assert keys(store, "c") == []

    def test_each_of_more_than_a_thousand_keys_is_listed_once_in_order(self, store: Store) -> None:
        expected = [f"many/{n:05d}" for n in range(1_050)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda key: store.put(key, b""), reversed(expected)))
        assert keys(store, "many/") == expected

    def test_every_key_is_listed_when_directories_and_files_mix(self, store: Store) -> None:
        expected = ["a-b/x", "a.b", "a/x", "a/y/z", "a0", "a_b"]
        for key in expected:
            store.put(key, b"")
        # Not in one order: a server that keeps directories lists a/x before a-b/x.
        assert sorted(keys(store)) == expected

    def test_stores_below_other_prefixes_see_nothing_of_each_other(self, open_below: OpenStore) -> None:
        top, store_one, store_two = open_below(""), open_below("one"), open_below("one-two")
        store_one.put("k", b"1")
        store_two.put("k", b"2")
        pending = upload(store_one, "pending", [b"x"])
        assert keys(store_one) == keys(store_two) == ["k"]
        assert (store_one.get("k"), store_two.get("k")) == (b"1", b"2")
        assert keys(top) == ["one-two/k", "one/k"] or keys(top) == ["one/k", "one-two/k"]
        assert list(store_two.list_uploads("")) == []
        assert [u[0] for u in top.list_uploads("")] == ["one/pending"]
        store_one.abort_upload("pending", pending.upload_id)


class TestUploads:
    def test_an_upload_is_invisible_until_it_is_completed(self, store: Store) -> None:
        pending = upload(store, "k")
        assert store.get("k") is None
        assert store.head("k") is None
        assert keys(store) == []
        store.complete_upload(pending)
        assert store.get("k") == b"".join(SLICES)
        assert keys(store) == ["k"]

    def test_the_checksum_is_that_of_the_bytes_wherever_they_are_cut(self, store: Store) -> None:
        pending = upload(store, "k")
        assert pending.checksum == f"crc32:{zlib.crc32(b''.join(SLICES)):08x}"
        etag = store.complete_upload(pending)
        assert (stat := store.head("k")) is not None
        assert (stat.etag, stat.size) == (etag, pending.size)
        assert stat.checksum == (pending.checksum if checksums(store) else None)

    def test_the_etag_of_three_parts_is_known_where_etags_are_md5s(self, store: Store) -> None:
        pending = upload(store, "k")
        digests = b"".join(hashlib.md5(data).digest() for data in SLICES)
        expected = f"{md5(digests)}-3"
        assert (pending.md5_etag == expected) != foreign_etags(store)
        assert (store.complete_upload(pending) == expected) != foreign_etags(store)

    def test_a_part_is_the_store_s_etag_and_our_crc_and_size(self, store: Store) -> None:
        part = store.upload_part(store.start_upload("k"), 1, b"data", crc32(b"data"))
        assert part[1:] == (zlib.crc32(b"data"), 4)
        assert (part.etag == md5(b"data")) != foreign_etags(store)

    def test_a_part_may_come_from_a_file(self, store: Store) -> None:
        begun = store.start_upload("k")
        with TemporaryFile() as file:
            file.write(SLICES[1])
            part = store.upload_part(begun, 1, file, crc32(SLICES[1]))
        assert part.size == len(SLICES[1])
        store.complete_upload(begun._replace(parts=(part,)))
        assert store.get("k") == SLICES[1]

    def test_an_upload_survives_pickling(self, store: Store) -> None:
        pending = upload(store, "k", [b"x"])
        assert pickle.loads(pickle.dumps(pending)) == pending

    def test_a_part_that_is_not_what_it_was_is_refused(self, store: Store) -> None:
        with pytest.raises(TransientError):
            impatient(store).upload_part(store.start_upload("k"), 1, b"data", crc32(b"date"))

    def test_parts_that_do_not_make_the_whole_are_refused(self, store: Store) -> None:
        pending = upload(store, "k", [b"x"])
        other = pending._replace(parts=(pending.parts[0]._replace(crc32=crc32(b"y")),))
        if pending.checked:
            with pytest.raises(TransientError):
                impatient(store).complete_upload(other)
            assert store.head("k") is None

    def test_parts_are_numbered_from_1_to_10_000(self, store: Store) -> None:
        begun = store.start_upload("k")
        store.upload_part(begun, MAX_PARTS, b"last", crc32(b"last"))
        for number in (0, MAX_PARTS + 1):
            with pytest.raises(PermanentError, match="part"):
                store.upload_part(begun, number, b"none", crc32(b"none"))

    def test_completing_replaces_what_was_there(self, store: Store) -> None:
        store.put("k", b"old")
        pending = upload(store, "k")
        assert store.get("k") == b"old"
        store.complete_upload(pending)
        assert store.get("k") == b"".join(SLICES)

    def test_a_part_sent_again_replaces_the_first(self, store: Store) -> None:
        begun = store.start_upload("k")
        send(store, begun, [b"first"])
        store.complete_upload(send(store, begun, [b"second"]))
        assert store.get("k") == b"second"

    def test_completing_again_succeeds_while_the_object_has_these_parts(self, store: Store) -> None:
        pending = upload(store, "k")
        first = store.complete_upload(pending)
        assert store.complete_upload(pending) == first
        assert store.get("k") == b"".join(SLICES)

    def test_a_small_part_before_the_last_is_refused_at_completion(self, store: Store) -> None:
        pending = upload(store, "k", [b"small", b"last"])
        with pytest.raises(PermanentError, match="smaller than 5 MiB"):
            store.complete_upload(pending)
        assert store.get("k") is None

    def test_completing_with_a_part_that_was_not_sent_is_refused(self, store: Store) -> None:
        pending = upload(store, "k", [SLICES[0]])
        other = UploadedPart(md5(b"other"), crc32(b"other"), 5)
        for parts in [(other,), (*pending.parts, other)]:
            with pytest.raises(PermanentError, match="does not have these parts"):
                store.complete_upload(pending._replace(parts=parts))
        assert store.get("k") is None

    def test_an_aborted_upload_cannot_go_on(self, store: Store) -> None:
        store.put("k", b"something else")
        pending = upload(store, "k")
        store.abort_upload("k", pending.upload_id)
        with pytest.raises(TransientError, match="the upload of k is gone"):
            store.complete_upload(pending)
        with pytest.raises(TransientError, match="the upload of k is gone"):
            store.upload_part(pending, 1, b"late", crc32(b"late"))
        assert store.get("k") == b"something else"

    def test_aborting_may_be_repeated_and_leaves_a_completed_object_alone(self, store: Store) -> None:
        pending = upload(store, "k")
        store.complete_upload(pending)
        store.abort_upload("k", pending.upload_id)
        store.abort_upload("k", pending.upload_id)
        assert store.get("k") == b"".join(SLICES)

    def test_open_uploads_are_listed_until_they_end(self, store: Store) -> None:
        pending = [upload(store, key, [b"x"]) for key in ("u/a", "u/a", "u/b", "v")]
        uploads = list(store.list_uploads("u/"))
        assert {u[:2] for u in uploads} == {(p.key, p.upload_id) for p in pending[:3]}
        assert all(abs(began - datetime.now(UTC)) < timedelta(minutes=1) for _, _, began in uploads)
        store.abort_upload(pending[0].key, pending[0].upload_id)
        store.complete_upload(pending[1])
        assert [u[:2] for u in store.list_uploads("u/")] == [("u/b", pending[2].upload_id)]

    def test_two_uploads_of_one_key_do_not_mix(self, store: Store) -> None:
        first, second = upload(store, "k", [b"first"]), upload(store, "k", [b"second"])
        store.complete_upload(second)
        assert store.get("k") == b"second"
        if isinstance(store, AzureStore):
            # Azure drops the blocks of a blob when any list of them is committed.
            with pytest.raises(TransientError, match="the upload of k is gone"):
                store.complete_upload(first)
            assert store.get("k") == b"second"
            return
        store.complete_upload(first)
        assert store.get("k") == b"first"


class TestCompare:
    def test_an_object_that_is_as_it_should_be(self, store: Store) -> None:
        pending = upload(store, "k")
        etag = store.complete_upload(pending)
        known = compare(store, "k", pending.size, pending.checksum, etag)
        assert (known.same, known.by) == (True, "checksum" if checksums(store) else "etag")
        assert known.stat == store.head("k")
        # After a crash nobody knows what the store said.
        crashed = compare(store, "k", pending.size, pending.checksum, pending.md5_etag)
        assert (crashed.same, crashed.by) == (
            True,
            "checksum" if checksums(store) else "bytes" if foreign_etags(store) else "etag",
        )
        unknown = compare(store, "k", pending.size, pending.checksum)
        assert (unknown.same, unknown.by) == (True, "checksum" if checksums(store) else "bytes")

    def test_an_object_that_was_written_again_with_the_same_bytes(self, store: Store) -> None:
        first = store.complete_upload(upload(store, "k"))
        pending = upload(store, "k")
        assert (store.complete_upload(pending) != first) == foreign_etags(store)
        assert compare(store, "k", pending.size, pending.checksum, first).same

    def test_an_object_with_other_bytes(self, store: Store) -> None:
        data = b"0" * (9 << 20)
        pending = upload(store, "k", [data])
        etag = store.complete_upload(pending)
        for place in (0, 5 << 20, len(data) - 1):
            store.complete_upload(upload(store, "k", [data[:place] + b"1" + data[place + 1 :]]))
            comparison = compare(store, "k", pending.size, pending.checksum, etag)
            assert (comparison.same, comparison.by) == (False, "checksum" if checksums(store) else "bytes")
            assert str(comparison).startswith("9437184 bytes with checksum crc32:")

    def test_an_object_of_another_size_or_none(self, store: Store) -> None:
        etag = store.put("k", b"data")
        comparison = compare(store, "k", 5, f"crc32:{crc32(b'data'):08x}", etag)
        assert (comparison.same, comparison.by, str(comparison)) == (False, "size", "4 bytes")
        none = compare(store, "missing", 4, f"crc32:{crc32(b'data'):08x}", etag)
        assert (none.same, none.by, str(none)) == (False, "nothing", "nothing")

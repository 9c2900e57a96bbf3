"""The S3 store against a server, on real sockets, that fails and then works: what is tried again, what comes out."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import md5 as _md5

import pytest

from kafka_archiver.errors import IntegrityError, TransientError
from kafka_archiver.store import PendingUpload
from kafka_archiver.store.s3 import S3Store
from tests.support.faulty_s3 import Fault, FaultyS3, refuse
from tests.unit.conftest import TRIES, OpenFaulty

pytestmark = pytest.mark.unit

KEY, DATA = "a/key", b"some bytes"


def md5(data: bytes) -> str:
    return _md5(data).hexdigest()


def _prepare(store: S3Store) -> PendingUpload:
    store.put("there", DATA)
    upload_id = store.start_upload(KEY)
    return PendingUpload(KEY, upload_id, (store.upload_part(KEY, upload_id, 1, DATA),))


# What each operation does, given the upload that was prepared, and whether it came out right.
OPERATIONS: dict[str, Callable[[S3Store, PendingUpload], bool]] = {
    "create": lambda s, _: s.create(KEY, DATA) is True and s.get(KEY) == DATA,
    "replace": lambda s, _: s.replace("there", b"other", md5(DATA)) is True and s.get("there") == b"other",
    "put_object": lambda s, _: bool(s.put(KEY, DATA)) and s.get(KEY) == DATA,
    "upload_part": lambda s, u: s.upload_part(KEY, u.upload_id, 1, DATA) == u.parts[0],
    "complete_multipart_upload": lambda s, u: s.complete_upload(*u) == u.checksum and s.get(KEY) == DATA,
    "get_object": lambda s, _: s.get("there") == DATA,
    "head_object": lambda s, _: (stat := s.head("there")) is not None and stat.size == len(DATA),
    "list_objects_v2": lambda s, _: [stat.key for stat in s.list("")] == ["there"],
    "create_multipart_upload": lambda s, _: bool(s.start_upload(KEY)),
    "abort_multipart_upload": lambda s, u: s.abort_upload(KEY, u.upload_id) is None,
    "head_bucket": lambda s, _: abs(s.now() - datetime.now(UTC)) < timedelta(minutes=1),
    "delete_object": lambda s, _: s.delete("there") is None and s.get("there") is None,
}
FAULTS = {
    "500": refuse(500, "InternalError"),
    "503": refuse(503, "SlowDown"),
    "429": refuse(429, "TooManyRequests"),
    "a body that is no XML": refuse(502, "Bad</Gateway"),
    "reset": Fault("reset"),
    "answer lost": Fault("lose"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_fails_twice_and_then_works_has_worked(
    server: FaultyS3, store: S3Store, waits: list[float], operation: str, fault: Fault
) -> None:
    prepared = _prepare(store)
    asked = server.requests.count(operation)
    server.fail(operation, fault, fault)
    assert OPERATIONS[operation](store, prepared)
    # These can be done only once: the second try is told that they are done.
    once = operation in ("create", "replace", "complete_multipart_upload") and fault.kind == "lose"
    assert server.requests.count(operation) - asked == (2 if once else 3)
    assert waits == pytest.approx([0.2] if once else [0.2, 0.4])


@pytest.mark.parametrize("code", ["RequestTimeout", "IncompleteBody", "OperationAborted"])
def test_some_refusals_are_the_network_s_fault(server: FaultyS3, store: S3Store, code: str) -> None:
    server.fail("put_object", refuse(400, code))
    store.put(KEY, DATA)
    assert server.requests == ["put_object", "put_object"]


@pytest.mark.parametrize(
    "operation", ["create", "replace", "put_object", "upload_part", "complete_multipart_upload", "get_object"]
)
def test_an_answer_that_does_not_come_is_asked_for_again(server: FaultyS3, connect: OpenFaulty, operation: str) -> None:
    prepared = _prepare(connect())
    server.fail(operation, Fault("stall"))
    # The connection itself is not new, so that only this fault can be slow.
    assert OPERATIONS[operation](connect(read=0.5), prepared)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_never_works_is_a_transient_error_after_the_last_try(
    server: FaultyS3, store: S3Store, operation: str
) -> None:
    prepared = _prepare(store)
    asked = server.requests.count(operation)
    server.fail(operation, *[refuse(503, "SlowDown")] * TRIES)
    with pytest.raises(TransientError, match=rf"HTTP 503.* from {server.url}.* \(tried {TRIES} times in 0 s\)"):
        OPERATIONS[operation](store, prepared)
    assert server.requests.count(operation) - asked == TRIES


def test_nobody_at_the_endpoint_is_a_transient_error_that_names_it(connect: OpenFaulty, waits: list[float]) -> None:
    with FaultyS3() as gone:
        pass
    with pytest.raises(TransientError, match=rf"no connection \(Connection refused\) at {gone.url} \(tried 4 times"):
        connect(endpoint_url=gone.url).get(KEY)
    assert len(waits) == TRIES - 1


class TestCreate:
    def test_after_a_lost_answer_the_stored_bytes_say_that_it_was_us(self, server: FaultyS3, store: S3Store) -> None:
        server.fail("create", Fault("lose"))
        assert store.create(KEY, DATA) is True
        assert server.requests == ["create", "create", "get_object"]

    def test_after_a_reset_the_stored_bytes_say_that_it_was_somebody_else(
        self, server: FaultyS3, store: S3Store
    ) -> None:
        server.store.put(KEY, b"somebody else's")
        server.fail("create", Fault("reset"))
        assert store.create(KEY, DATA) is False
        assert server.store.get(KEY) == b"somebody else's"

    def test_the_first_answer_is_believed_without_reading(self, server: FaultyS3, store: S3Store) -> None:
        server.store.put(KEY, DATA)
        assert store.create(KEY, DATA) is False
        assert server.requests == ["create"]

    def test_a_conflict_with_another_creator_is_tried_again(self, server: FaultyS3, store: S3Store) -> None:
        server.fail("create", refuse(409, "ConditionalRequestConflict"))
        assert store.create(KEY, DATA) is True
        assert server.requests == ["create", "create"]

    def test_a_document_that_arrived_damaged_is_an_integrity_error(self, server: FaultyS3, store: S3Store) -> None:
        server.fail("create", Fault("swallow"))
        with pytest.raises(IntegrityError, match="a/key was written just now, but does not hold what was sent"):
            store.create(KEY, DATA)

    def test_an_etag_that_is_no_md5_is_settled_by_reading(self, server: FaultyS3, store: S3Store) -> None:
        server.fail("create", Fault("odd"))
        assert store.create(KEY, DATA) is True
        assert server.requests == ["create", "get_object"]


class TestReplace:
    def test_after_a_lost_answer_the_stored_bytes_say_that_it_was_us(self, server: FaultyS3, store: S3Store) -> None:
        etag = store.put(KEY, b"before")
        server.fail("replace", Fault("lose"))
        assert store.replace(KEY, DATA, etag) is True
        assert store.get(KEY) == DATA

    def test_after_a_reset_the_stored_bytes_say_that_it_was_somebody_else(
        self, server: FaultyS3, store: S3Store
    ) -> None:
        etag = store.put(KEY, b"before")
        server.store.put(KEY, b"somebody else's")
        server.fail("replace", Fault("reset"))
        assert store.replace(KEY, DATA, etag) is False
        assert server.store.get(KEY) == b"somebody else's"


class TestDamage:
    @pytest.mark.parametrize("operation", ["create", "put_object", "upload_part"])
    def test_bytes_damaged_on_the_way_are_refused_by_their_md5_and_sent_again(
        self, server: FaultyS3, store: S3Store, operation: str
    ) -> None:
        prepared = _prepare(store)
        server.fail(operation, Fault("damage"))
        assert OPERATIONS[operation](store, prepared)
        assert server.requests.count(operation) >= 2

    @pytest.mark.parametrize("operation", ["put_object", "upload_part"])
    def test_damage_that_the_server_lets_pass_is_seen_by_its_etag_and_sent_again(
        self, server: FaultyS3, store: S3Store, operation: str
    ) -> None:
        prepared = _prepare(store)
        server.fail(operation, Fault("swallow"))
        assert OPERATIONS[operation](store, prepared)

    @pytest.mark.parametrize("operation", ["put_object", "upload_part"])
    def test_a_write_that_is_always_damaged_says_both_checksums(
        self, server: FaultyS3, store: S3Store, operation: str
    ) -> None:
        prepared = _prepare(store)
        server.fail(operation, *[Fault("odd")] * TRIES)
        with pytest.raises(TransientError, match=r"10 bytes sent of a/key have the MD5 .*, but the store says 0123456"):
            OPERATIONS[operation](store, prepared)

    @pytest.mark.parametrize("kind", ["cut", "garble"])
    def test_damaged_reads_are_read_again(self, server: FaultyS3, store: S3Store, kind: str) -> None:
        store.put(KEY, DATA)
        server.fail("get_object", Fault(kind), Fault(kind))  # type: ignore[arg-type]
        assert store.get(KEY) == DATA
        assert server.requests.count("get_object") == 3

    def test_half_an_error_is_not_taken_for_another_one(self, server: FaultyS3, store: S3Store) -> None:
        server.fail("get_object", Fault("torn", 404, "NoSuchKey"))
        assert store.get(KEY) is None
        store.put(KEY, DATA)
        server.fail("get_object", *[Fault("torn", 400, "RequestTimeout")] * TRIES)
        with pytest.raises(TransientError, match=r"HTTP 400 400 from .*, and the rest of the answer was cut off"):
            store.get(KEY)

    def test_a_read_that_is_always_cut_off_says_so(self, server: FaultyS3, store: S3Store) -> None:
        store.put(KEY, DATA)
        server.fail("get_object", *[Fault("cut")] * TRIES)
        with pytest.raises(
            TransientError, match=r"get_object of a/key in bucket archive: the answer was cut off at .* \(tried 4 times"
        ):
            store.get(KEY)

    def test_a_read_that_is_always_garbled_says_so(self, server: FaultyS3, store: S3Store) -> None:
        store.put(KEY, DATA)
        server.fail("get_object", *[Fault("garble")] * TRIES)
        with pytest.raises(TransientError, match=r"the 10 bytes read of a/key do not have its ETag 9d0"):
            store.get(KEY)

    @pytest.mark.parametrize("kind", ["cut", "blank"])
    def test_a_listing_that_breaks_off_is_never_taken_for_a_short_one(
        self, server: FaultyS3, store: S3Store, kind: str
    ) -> None:
        for name in "abcde":
            store.put(name, b"")
        server.fail("list_objects_v2", Fault("reset"), Fault("reset"), Fault("lose"), Fault(kind))  # type: ignore[arg-type]
        with pytest.raises(TransientError):
            list(store.list(""))

    def test_a_listing_goes_on_after_a_page_that_was_cut_off(self, server: FaultyS3, store: S3Store) -> None:
        for name in "abcde":
            store.put(name, b"")
        listing = store.list("")
        assert next(listing).key == "a"
        server.fail("list_objects_v2", Fault("cut"), refuse(503, "SlowDown"))
        assert [stat.key for stat in listing] == ["b", "c", "d", "e"]
        assert server.requests.count("list_objects_v2") == 5

    @pytest.mark.parametrize("operation", ["put_object", "upload_part", "create", "get_object"])
    def test_the_etag_of_an_encrypted_object_is_not_compared(
        self, server: FaultyS3, store: S3Store, operation: str
    ) -> None:
        upload_id = store.start_upload(KEY)
        store.put("there", DATA)
        before = len(server.requests)
        server.fail(operation, Fault("odd", headers={"x-amz-server-side-encryption": "aws:kms"}))
        if operation == "upload_part":
            assert store.upload_part(KEY, upload_id, 1, DATA).etag == "0123456789abcdef0123456789abcdef"
        elif operation == "get_object":
            assert store.get("there") == DATA
        else:
            assert store.put(KEY, DATA) if operation == "put_object" else store.create(KEY, DATA)
        assert server.requests[before:] == [operation]


class TestCompletion:
    def test_after_a_lost_answer_the_object_says_that_it_is_done(self, server: FaultyS3, store: S3Store) -> None:
        prepared = _prepare(store)
        server.fail("complete_multipart_upload", Fault("lose"))
        assert store.complete_upload(*prepared) == prepared.checksum
        assert server.requests[-3:] == ["complete_multipart_upload", "complete_multipart_upload", "head_object"]

    def test_another_object_at_the_key_is_no_sign_of_completion(self, server: FaultyS3, store: S3Store) -> None:
        prepared = _prepare(store)
        server.store.abort_upload(KEY, prepared.upload_id)
        server.store.put(KEY, b"other bytes")
        with pytest.raises(TransientError, match="the upload of a/key is gone"):
            store.complete_upload(*prepared)
        assert server.requests.count("complete_multipart_upload") == 1

    @pytest.mark.parametrize("code", ["InternalError", "SlowDown"])
    def test_an_error_in_the_body_of_a_200_is_an_error(
        self, server: FaultyS3, store: S3Store, waits: list[float], code: str
    ) -> None:
        prepared = _prepare(store)
        server.fail("complete_multipart_upload", Fault("late", code=code))
        assert store.complete_upload(*prepared) == prepared.checksum
        assert waits == [0.2]

    @pytest.mark.parametrize("kind", ["blank", "cut"])
    def test_a_200_without_an_etag_is_settled_by_asking(self, server: FaultyS3, store: S3Store, kind: str) -> None:
        prepared = _prepare(store)
        server.fail("complete_multipart_upload", Fault(kind))  # type: ignore[arg-type]
        assert store.complete_upload(*prepared) == prepared.checksum
        assert server.requests[-1] == "head_object"

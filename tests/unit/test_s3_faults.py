"""The S3 store against a server, on real sockets, that fails and then works: what is tried again, what comes out."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import md5
from tempfile import TemporaryFile
from uuid import uuid4

import pytest

from kafka_archiver.messages.errors import IntegrityError, PermanentError, TransientError
from kafka_archiver.store import PendingUpload
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.store.s3 import S3Store
from kafka_archiver.values.checksum import crc32
from tests.support.faulty_s3 import Checksums, Fault, FaultyS3, refuse
from tests.unit.conftest import TRIES, OpenFaulty

pytestmark = pytest.mark.unit

KEY, DATA = "a/key", b"some bytes"
CRC = crc32(DATA)


def etag(store: S3Store, key: str) -> str:
    stat = store.head(key)
    return stat.etag if stat else ""


def _prepare(store: S3Store) -> PendingUpload:
    store.put("there", DATA)
    begun = store.start_upload(KEY)
    return begun._replace(parts=(store.upload_part(begun, 1, DATA, CRC),))


# What each operation does, given the upload that was prepared, and whether it came out right.
OPERATIONS: dict[str, Callable[[S3Store, PendingUpload], bool]] = {
    "create": lambda s, _: s.create(KEY, DATA) is True and s.get(KEY) == DATA,
    "replace": lambda s, _: s.replace("there", b"other", etag(s, "there")) is True and s.get("there") == b"other",
    "put_object": lambda s, _: bool(s.put(KEY, DATA)) and s.get(KEY) == DATA,
    "upload_part": lambda s, u: s.upload_part(u, 1, DATA, CRC)[1:] == (CRC, len(DATA)),
    "complete_multipart_upload": lambda s, u: s.complete_upload(u) == etag(s, KEY) and s.get(KEY) == DATA,
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
    @pytest.mark.parametrize("operation", ["create", "replace"])
    def test_after_a_reset_the_stored_bytes_say_that_it_was_somebody_else(
        self, server: FaultyS3, store: S3Store, operation: str
    ) -> None:
        before = store.put(KEY, b"before")
        server.store.put(KEY, b"somebody else's")
        server.fail(operation, Fault("reset"))
        assert not (store.create(KEY, DATA) if operation == "create" else store.replace(KEY, DATA, before))
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
        with pytest.raises(IntegrityError, match="a/key was just written, but with other bytes than were sent"):
            store.create(KEY, DATA)

    def test_an_etag_that_is_no_md5_is_settled_by_reading(self, server: FaultyS3, store: S3Store) -> None:
        server.checksums = "ignored"
        server.fail("create", Fault("odd"))
        assert store.create(KEY, DATA) is True
        assert server.requests == ["create", "get_object"]


class TestDamage:
    @pytest.mark.parametrize("checksums", ["known", "ignored"])
    @pytest.mark.parametrize("operation", ["create", "put_object", "upload_part"])
    def test_bytes_damaged_on_the_way_are_refused_by_their_checksum_and_sent_again(
        self, server: FaultyS3, store: S3Store, operation: str, checksums: Checksums
    ) -> None:
        server.checksums = checksums
        prepared = _prepare(store)
        server.fail(operation, Fault("damage"))
        assert OPERATIONS[operation](store, prepared)
        assert server.requests.count(operation) >= 2

    @pytest.mark.parametrize("checksums", ["known", "ignored"])
    @pytest.mark.parametrize("operation", ["put_object", "upload_part"])
    def test_damage_that_the_server_lets_pass_is_seen_by_what_it_says_and_sent_again(
        self, server: FaultyS3, store: S3Store, operation: str, checksums: Checksums
    ) -> None:
        server.checksums = checksums
        prepared = _prepare(store)
        server.fail(operation, Fault("swallow"))
        asked = server.requests.count(operation)
        assert OPERATIONS[operation](store, prepared)
        assert server.requests.count(operation) - asked == 2

    @pytest.mark.parametrize(
        ("checksums", "fault", "message"),
        [
            ("known", Fault("swallow"), "sent for a/key have the CRC-32 .* but the store has CRC-32 [0-9a-f]{8} "),
            ("ignored", Fault("odd"), "for a/key have the CRC-32 .* and the MD5 .*, but the store has ETag 0123456"),
        ],
    )
    @pytest.mark.parametrize("operation", ["put_object", "upload_part"])
    def test_a_write_that_is_always_damaged_says_both_checksums(
        self, server: FaultyS3, store: S3Store, operation: str, checksums: Checksums, fault: Fault, message: str
    ) -> None:
        server.checksums = checksums
        prepared = _prepare(store)
        server.fail(operation, *[fault] * TRIES)
        with pytest.raises(TransientError, match=message):
            OPERATIONS[operation](store, prepared)

    @pytest.mark.parametrize("checksums", ["known", "ignored"])
    @pytest.mark.parametrize("kind", ["cut", "garble"])
    def test_damaged_reads_are_read_again(
        self, server: FaultyS3, store: S3Store, kind: str, checksums: Checksums
    ) -> None:
        server.checksums = checksums
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

    @pytest.mark.parametrize(
        ("kind", "checksums", "message"),
        [
            ("cut", "known", r"get_object of a/key in bucket archive: the answer was cut off at .* \(tried 4 times"),
            ("garble", "known", r"get_object of a/key .*: the answer does not match its checksum at .* \(tried 4"),
            ("garble", "ignored", r"the 10 bytes read of a/key do not have its ETag 9d0.* \(tried 4"),
        ],
    )
    def test_a_read_that_is_always_damaged_says_so(
        self, server: FaultyS3, store: S3Store, kind: str, checksums: Checksums, message: str
    ) -> None:
        server.checksums = checksums
        store.put(KEY, DATA)
        server.fail("get_object", *[Fault(kind)] * TRIES)  # type: ignore[arg-type]
        with pytest.raises(TransientError, match=message):
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
        server.checksums = "ignored"
        begun = store.start_upload(KEY)
        store.put("there", DATA)
        before = len(server.requests)
        server.fail(operation, Fault("odd", headers={"x-amz-server-side-encryption": "aws:kms"}))
        if operation == "upload_part":
            assert store.upload_part(begun, 1, DATA, CRC).etag == "0123456789abcdef0123456789abcdef"
        elif operation == "get_object":
            assert store.get("there") == DATA
        else:
            assert store.put(KEY, DATA) if operation == "put_object" else store.create(KEY, DATA)
        assert server.requests[before:] == [operation]

    @pytest.mark.parametrize("operation", ["put_object", "upload_part", "create"])
    def test_the_etag_is_not_compared_if_we_asked_for_an_encryption_that_makes_others(
        self, server: FaultyS3, connect: OpenFaulty, operation: str
    ) -> None:
        store = connect(sse="aws:kms")
        server.checksums = "ignored"
        begun = store.start_upload(KEY)
        server.fail(operation, Fault("odd"))
        before = len(server.requests)
        if operation == "upload_part":
            assert store.upload_part(begun, 1, DATA, CRC).etag == "0123456789abcdef0123456789abcdef"
        else:
            assert store.put(KEY, DATA) if operation == "put_object" else store.create(KEY, DATA)
        assert server.requests[before:] == [operation]

    def test_nor_if_the_answer_does_not_say_how_the_object_is_encrypted(
        self, server: FaultyS3, connect: OpenFaulty
    ) -> None:
        store = connect(sse="aws:kms")
        server.checksums = "ignored"
        store.put("there", DATA)
        server.confirms = False
        server.fail("get_object", Fault("odd"))
        before = len(server.requests)
        assert store.get("there") == DATA
        assert server.requests[before:] == ["get_object"]


class TestCompletion:
    @pytest.mark.parametrize(
        ("checksums", "foreign", "asked"),
        [
            ("known", False, ["head_object"]),
            ("known", True, ["head_object"]),
            ("ignored", False, ["head_object"]),
            ("ignored", True, ["head_object", "get_object"]),
        ],
    )
    def test_after_a_lost_answer_the_object_says_that_it_is_done(
        self, server: FaultyS3, store: S3Store, checksums: Checksums, foreign: bool, asked: list[str]
    ) -> None:
        prepared = _begin(server, store, checksums, foreign)
        server.fail("complete_multipart_upload", Fault("lose"))
        assert store.complete_upload(prepared) == etag(store, KEY)
        assert server.requests[: 2 + len(asked)] == ["complete_multipart_upload", "complete_multipart_upload", *asked]

    @pytest.mark.parametrize("existing", [b"other bytes", b"same size!"])
    @pytest.mark.parametrize("foreign", [False, True])
    @pytest.mark.parametrize("checksums", ["known", "ignored"])
    def test_another_object_at_the_key_is_no_sign_of_completion(
        self, server: FaultyS3, store: S3Store, checksums: Checksums, foreign: bool, existing: bytes
    ) -> None:
        prepared = _begin(server, store, checksums, foreign)
        server.store.abort_upload(KEY, prepared.upload_id)
        server.store.put(KEY, existing)
        with pytest.raises(TransientError, match="the upload of a/key is gone"):
            store.complete_upload(prepared)
        assert server.requests.count("complete_multipart_upload") == 1

    @pytest.mark.parametrize("code", ["InternalError", "SlowDown"])
    def test_an_error_in_the_body_of_a_200_is_an_error(
        self, server: FaultyS3, store: S3Store, waits: list[float], code: str
    ) -> None:
        prepared = _prepare(store)
        server.fail("complete_multipart_upload", Fault("late", code=code))
        assert store.complete_upload(prepared) == etag(store, KEY)
        assert waits == [0.2]

    @pytest.mark.parametrize("checksums", ["known", "ignored"])
    @pytest.mark.parametrize("kind", ["blank", "cut"])
    def test_a_200_without_an_etag_is_settled_by_asking(
        self, server: FaultyS3, store: S3Store, kind: str, checksums: Checksums
    ) -> None:
        prepared = _begin(server, store, checksums, foreign=False)
        server.fail("complete_multipart_upload", Fault(kind))  # type: ignore[arg-type]
        assert store.complete_upload(prepared) == server.store.list("").__next__().etag
        assert server.requests[-1] == "head_object"

    @pytest.mark.parametrize("checksums", ["known", "ignored"])
    def test_a_store_that_made_something_else_of_the_parts_is_found_out(
        self, server: FaultyS3, store: S3Store, checksums: Checksums
    ) -> None:
        class Confused(MemoryStore):
            def complete_upload(self, upload: PendingUpload) -> str:
                super().complete_upload(upload)
                return f"{self.put(upload.key, DATA[::-1])}-1"

        server.store = Confused("confused")
        prepared = _begin(server, store, checksums, foreign=False)
        with pytest.raises(
            IntegrityError, match=r"expected 10 bytes with checksum crc32:.* the store has 10 bytes with"
        ):
            store.complete_upload(prepared)

    def test_a_whole_that_its_parts_do_not_make_is_refused_by_the_store(self, server: FaultyS3, store: S3Store) -> None:
        prepared = _prepare(store)
        wrong = prepared._replace(parts=(prepared.parts[0]._replace(crc32=CRC ^ 1),))
        with pytest.raises(TransientError, match="HTTP 400 BadDigest"):
            store.complete_upload(wrong)
        assert store.head(KEY) is None


class TestChecksums:
    """The kind of a store is seen from its answers."""

    def test_a_store_that_knows_them_checks_each_part_and_the_whole_without_md5s(
        self, server: FaultyS3, store: S3Store
    ) -> None:
        prepared = _begin(server, store, "known", foreign=False)
        assert prepared.checked
        store.complete_upload(prepared)
        part, whole = server.headers[-1], server.headers[-1]
        assert whole["x-amz-checksum-type"] == "FULL_OBJECT"
        assert "x-amz-checksum-crc32" in whole
        store.upload_part(store.start_upload(KEY), 1, DATA, CRC)
        part = server.headers[-1]
        assert "x-amz-checksum-crc32" in part
        assert "Content-MD5" not in part
        assert server.store.get(KEY) == DATA
        assert (stat := store.head(KEY)) is not None
        assert stat.checksum == prepared.checksum

    def test_one_that_ignores_them_gets_md5s(self, server: FaultyS3, store: S3Store) -> None:
        prepared = _begin(server, store, "ignored", foreign=False)
        assert not prepared.checked
        store.upload_part(prepared, 1, DATA, CRC)
        assert "Content-MD5" in server.headers[-1]
        assert "x-amz-checksum-crc32" not in server.headers[-1]
        store.complete_upload(prepared)
        assert store.get(KEY) == DATA
        assert (stat := store.head(KEY)) is not None
        assert stat.checksum is None

    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_one_that_refuses_them_is_asked_once(self, server: FaultyS3, connect: OpenFaulty, operation: str) -> None:
        server.checksums = "refused"
        # A client of its own, which has not asked before.
        mine = {"aws_access_key_id": f"REFUSED{operation.upper()}"}
        begun = connect(**mine).start_upload("first")
        assert server.requests == ["create_multipart_upload", "create_multipart_upload"]
        assert not begun.checked
        prepared = _prepare(connect(**mine))
        asked = server.requests.count(operation)
        assert OPERATIONS[operation](connect(**mine), prepared)
        assert server.requests.count(operation) - asked == 1

    @pytest.mark.parametrize("operation", ["create", "replace", "put_object", "get_object", "head_object"])
    def test_one_that_refuses_them_may_be_asked_anything_first(
        self, server: FaultyS3, connect: OpenFaulty, operation: str
    ) -> None:
        server.store.put("there", DATA)
        server.checksums = "refused"
        store = connect(aws_access_key_id=f"FIRST{operation.upper()}")
        assert OPERATIONS[operation](store, PendingUpload(KEY, "none"))
        assert len([headers for headers in server.headers if any(map(_is_about_checksums, headers))]) == 1

    def test_one_that_knows_those_of_parts_alone_gets_md5s(self, server: FaultyS3, connect: OpenFaulty) -> None:
        server.checksums = "of parts"
        store = connect(aws_access_key_id="OFPARTS")
        prepared = _prepare(store)
        assert not prepared.checked
        assert [upload_id for _, upload_id, _ in store.list_uploads("")] == [prepared.upload_id]
        store.complete_upload(prepared)
        assert store.get(KEY) == DATA
        before = server.requests.count("create_multipart_upload")
        assert not store.start_upload(KEY).checked
        assert server.requests.count("create_multipart_upload") == before + 1

    def test_a_refusal_for_another_reason_is_no_sign(self, server: FaultyS3, connect: OpenFaulty) -> None:
        store = connect(aws_access_key_id="DENIED")
        for status, code in ((403, "AccessDenied"), *[(400, "InvalidArgument")] * 2):
            server.fail("create_multipart_upload", refuse(status, code))
        for refusal in ("access denied", "HTTP 400 InvalidArgument"):
            with pytest.raises(PermanentError, match=refusal):
                store.start_upload(KEY)
        assert store.start_upload(KEY).checked

    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_etags_of_any_kind_will_do(self, server: FaultyS3, store: S3Store, operation: str) -> None:
        server.store = MemoryStore(f"foreign {operation}", foreign_etags=True)
        assert OPERATIONS[operation](store, _prepare(store))

    @pytest.mark.parametrize("checksums", ["known", "ignored"])
    def test_what_was_damaged_before_it_was_sent_is_not_stored(
        self, server: FaultyS3, store: S3Store, checksums: Checksums
    ) -> None:
        server.checksums = checksums
        begun = store.start_upload(KEY)
        with pytest.raises(TransientError, match=r"BadDigest|part 1 of a/key has changed since it was encoded"):
            store.upload_part(begun, 1, DATA, CRC ^ 1)

    def test_a_part_from_a_file_is_sent_again_from_its_beginning(self, server: FaultyS3, store: S3Store) -> None:
        begun = store.start_upload(KEY)
        server.fail("upload_part", Fault("lose"), refuse(503, "SlowDown"), Fault("damage"))
        with TemporaryFile() as file:
            file.write(DATA)
            part = store.upload_part(begun, 1, file, CRC)
        assert part == (md5(DATA).hexdigest(), CRC, len(DATA))
        assert server.requests.count("upload_part") == 4


def _is_about_checksums(header: str) -> bool:
    return header.lower().startswith("x-amz-checksum")


def _begin(server: FaultyS3, store: S3Store, checksums: Checksums, foreign: bool) -> PendingUpload:
    """An upload on a server of this kind, whose requests are counted from then on."""
    server.checksums = checksums
    if foreign:
        server.store = MemoryStore(uuid4().hex, foreign_etags=True)
        server.encrypted = True
    begun = store.start_upload(KEY)
    part = store.upload_part(begun, 1, DATA, CRC)
    server.requests.clear()
    return begun._replace(parts=(part,))

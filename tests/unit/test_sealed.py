"""Sealed objects: what goes in comes out, for both readers, and nothing else passes for it."""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.audit.readers.sealed import Unsealed
from kafka_archiver.encryption import OpenedObject, Sealer, sealed
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.data_keys import DataKey

pytestmark = pytest.mark.unit

KEY = DataKey(bytes(range(32)))
NAME = "orders/date=2026-11-21/hour=05/orders+0+00000000000000000000.jsonl.gz.enc"
SEGMENT, HEADER, TAG = 16, 56, 16
PLAIN = st.binary(max_size=100)


@pytest.fixture(autouse=True, scope="module")
def _small_segments() -> Iterator[None]:
    """Segments of a few bytes, so that small objects have many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealed, "SEGMENT", SEGMENT)
        yield


def seal(pieces: Iterable[bytes], name: str = NAME, key: DataKey = KEY) -> bytes:
    sealer = Sealer(key, name)
    return b"".join([*sealer.update(pieces), *sealer.finish()])


def by_the_reader(data: bytes, name: str = NAME, key: DataKey = KEY) -> bytes:
    return OpenedObject(lambda at, length: data[at : at + length], len(data), lambda _: key, "x", name).read()


def by_the_audit(data: bytes, name: str = NAME, key: DataKey = KEY) -> bytes:
    reader = Unsealed(lambda at, length: data[at : at + length], len(data), name, key.secret)
    reader.read_to_end()
    return reader.read()


READERS = pytest.mark.parametrize("read", [by_the_reader, by_the_audit])


def refused(data: bytes, name: str = NAME, key: DataKey = KEY) -> None:
    """Neither reader takes it."""
    with pytest.raises(IntegrityError):
        by_the_reader(data, name, key)
    with pytest.raises(ValueError, match=r"^(it|segment) "):
        by_the_audit(data, name, key)


@READERS
@given(pieces=st.lists(PLAIN, max_size=8))
def test_what_was_sealed_is_read(read, pieces: list[bytes]) -> None:  # type: ignore[no-untyped-def]
    assert read(seal(pieces)) == b"".join(pieces)


@given(plain=PLAIN, cuts=st.lists(st.integers(0, 100), max_size=8))
def test_the_bytes_do_not_depend_on_the_pieces(plain: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), 100]
    assert seal(plain[a:b] for a, b in pairwise(edges)) == seal([plain])
    assert len(seal([plain])) == HEADER + len(plain) + TAG * max(1, -(-len(plain) // SEGMENT))


def test_the_bytes_are_a_promise() -> None:
    whole = seal([bytes(range(50))])
    assert hashlib.sha256(whole).hexdigest() == "c5898b97fe7613988844471cb1f57204581da08ee4389d6a9836efad1e26fe4f"
    assert (
        whole[:HEADER] == b"KAE1" + SEGMENT.to_bytes(4) + bytes.fromhex(KEY.id) + hashlib.sha256(NAME.encode()).digest()
    )


@given(plain=PLAIN, start=st.integers(0, 110), length=st.integers(0, 110))
def test_any_place_is_read_alone(plain: bytes, start: int, length: int) -> None:
    data = seal([plain])
    opened = OpenedObject(lambda at, count: data[at : at + count], len(data), lambda _: KEY, "x", NAME)
    opened.seek(start)
    content = b""
    while len(content) < length and (piece := opened.read(length - len(content))):
        content += piece
    assert content == plain[start : start + length]
    own = Unsealed(lambda at, count: data[at : at + count], len(data), NAME, KEY.secret)
    assert own.range(start, length) == plain[start : start + length]
    assert own.size == opened.size == len(plain)


@given(plain=PLAIN, at=st.integers(0, 1000), bit=st.integers(0, 7))
def test_a_flipped_bit_is_found_wherever_it_is(plain: bytes, at: int, bit: int) -> None:
    data = bytearray(seal([plain]))
    data[at % len(data)] ^= 1 << bit
    # The id of the data key decides which key is looked up; it is authenticated, too.
    refused(bytes(data))


@given(plain=PLAIN, length=st.integers(0, 300))
def test_a_truncated_object_is_found_wherever_it_ends(plain: bytes, length: int) -> None:
    data = seal([plain])
    refused(data[: length % len(data)])


@given(plain=PLAIN, more=st.binary(min_size=1, max_size=40))
def test_what_is_appended_is_found(plain: bytes, more: bytes) -> None:
    data = seal([plain])
    refused(data + more)
    refused(data + data[HEADER:])


@given(plain=st.binary(min_size=3 * SEGMENT, max_size=6 * SEGMENT), order=st.randoms(use_true_random=False))
def test_segments_have_their_places(plain: bytes, order) -> None:  # type: ignore[no-untyped-def]
    data = seal([plain])
    step = SEGMENT + TAG
    segments = [data[at : at + step] for at in range(HEADER, len(data), step)]
    shuffled = list(segments)
    order.shuffle(shuffled)
    if shuffled != segments:
        refused(data[:HEADER] + b"".join(shuffled))
    gone = order.randrange(len(segments))
    refused(data[:HEADER] + b"".join(segments[:gone] + segments[gone + 1 :]))
    refused(data[:HEADER] + b"".join([*segments[: gone + 1], *segments[gone:]]))


@given(plain=PLAIN, other=PLAIN)
def test_a_segment_of_another_object_or_run_has_no_place_here(plain: bytes, other: bytes) -> None:
    data = seal([plain])
    for foreign in (seal([plain], NAME + "2"), seal([plain], key=DataKey(bytes(32))), seal([other], NAME + "2")):
        refused(data[:HEADER] + foreign[HEADER:])
        refused(foreign)


@given(st.lists(st.tuples(st.binary(min_size=32, max_size=32), st.text(min_size=1, max_size=5)), unique=True))
def test_no_two_objects_have_a_key_in_common(objects: list[tuple[bytes, str]]) -> None:
    # The same content: with the same key and nonce its segments would be the same.
    content = bytes(3 * SEGMENT)
    sealed = [seal([content], name, DataKey(secret)) for secret, name in objects]
    segments = [data[at : at + SEGMENT + TAG] for data in sealed for at in range(HEADER, len(data), SEGMENT + TAG)]
    assert len(set(segments)) == len(segments)


@given(first=st.binary(min_size=SEGMENT, max_size=SEGMENT), second=st.binary(min_size=SEGMENT, max_size=SEGMENT))
def test_an_attempt_that_finds_other_records_gives_away_nothing(first: bytes, second: bytes) -> None:
    """The same object with other bytes: with AES-GCM, the difference of the two would be that of their contents."""
    first_bytes, second_bytes = seal([first])[HEADER:-TAG], seal([second])[HEADER:-TAG]
    if first == second:
        assert first_bytes == second_bytes
    else:
        difference = bytes(a ^ b for a, b in zip(first_bytes, second_bytes, strict=True))
        assert difference != bytes(a ^ b for a, b in zip(first, second, strict=True))
        assert seal([first])[-TAG:] != seal([second])[-TAG:]


@given(st.lists(st.binary(min_size=32, max_size=32), unique=True, max_size=6))
def test_the_id_of_a_key_tells_keys_apart_and_is_not_the_key(secrets: list[bytes]) -> None:
    keys = [DataKey(secret) for secret in secrets]
    assert all(a.id != b.id for a, b in combinations(keys, 2))
    for key in keys:
        assert key.secret.hex() not in f"{key!r} {key} {[key]}"
        assert repr(key.secret) not in f"{key!r} {key} {[key]}"


def test_memory_is_that_of_a_segment() -> None:
    sealer = Sealer(KEY, NAME)
    for _ in range(100):
        list(sealer.update([bytes(1000)]))
        assert len(sealer._held) <= SEGMENT


def test_another_object_is_no_sealed_object() -> None:
    with pytest.raises(
        IntegrityError, match="x is not encrypted by the archiver: expected an object that begins with KAE1"
    ):
        by_the_reader(b"PAR1" + bytes(100))

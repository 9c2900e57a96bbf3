"""Checksums: of a whole from its parts, and what S3 says of them."""

import base64
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.store import PendingUpload, UploadedPart
from kafka_archiver.store.s3_sums import Sums, crc_of, encoded
from kafka_archiver.values.checksum import crc32, joined, spelt

pytestmark = pytest.mark.unit

CRCS = st.integers(0, 2**32 - 1)


@given(st.lists(st.binary(max_size=50)))
def test_the_whole_follows_from_its_parts_wherever_it_is_cut(parts: list[bytes]) -> None:
    assert joined((crc32(part), len(part)) for part in parts) == zlib.crc32(b"".join(parts))


@given(CRCS, CRCS, st.integers(2**32, 2**45))
def test_a_part_may_have_any_size(first: int, second: int, size: int) -> None:
    # As many zero bytes as zlib could not see in an hour: they may be appended in two steps.
    half = size // 2
    assert joined([(first, 1), (second, size)]) == joined([(first, 1), (0, half), (0, size - half)]) ^ second


@given(st.binary(), st.binary())
def test_it_is_that_of_zlib_in_one_go_or_several(first: bytes, second: bytes) -> None:
    assert crc32(second, crc32(first)) == zlib.crc32(first + second)
    assert spelt(crc32(first)) == f"crc32:{zlib.crc32(first):08x}"


def test_the_checksum_of_nothing_and_one_with_zeros_in_front() -> None:
    assert (spelt(0), spelt(0xAB)) == ("crc32:00000000", "crc32:000000ab")


@given(CRCS)
def test_what_s3_says_is_what_it_was_told(crc: int) -> None:
    assert crc_of(encoded(crc)) == crc


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"ChecksumCRC32": ""},
        {"ChecksumCRC32": "h37GPQ==-1", "ChecksumType": "COMPOSITE"},
        {"ChecksumCRC32": "not base64 at all"},
        {"ChecksumCRC32": base64.b64encode(b"seven b").decode()},
    ],
)
def test_what_is_no_checksum_of_all_bytes_says_nothing(answer: dict[str, Any]) -> None:
    assert crc_of(answer) is None
    assert not Sums(1).differ(answer)


def test_etags_of_another_kind_give_none_for_the_whole() -> None:
    assert PendingUpload("k", "id", (UploadedPart("0" * 32, 1, 1), UploadedPart("0x8DC", 1, 1))).md5_etag == ""
    assert PendingUpload("k", "id", (UploadedPart("0" * 32, 1, 1),)).md5_etag == "4ae71336e44bf9bf79d2752e234818a5-1"

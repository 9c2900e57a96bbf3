"""The exact bytes of every format, so that nothing changes them unnoticed: no library upgrade, no setting."""

import hashlib
from functools import cache

import pytest

from tests.support.chunks import LAST_MS, Row, cut
from tests.support.formats import ODD, Case, every_case, fit_for

pytestmark = pytest.mark.contract

# The records below in every way to write them. ISA-L, which makes the gzip ones, was never run on another kind of
# CPU than x86-64; should it give other bytes there, one archive must not be written on both.
SHA256 = {
    "avro-gzip-record": "cc1183acc4f203fc34ef576527f915042db9707ab89d7d7f6f414ee3d8000fd1",
    "avro-none-record": "f0925ed7c0fa72459455fb819159a0613cf492d034209194c634b9c0f972c95e",
    "avro-zstd-record": "0c11f4eb4f251c3b414411e1c49d7d68f30676abf1f167c78a0832ed77419dd9",
    "jsonl-gzip-record": "7a1a3d4f797e6d3899b71c4a33d3e3980e139245248b3275fc2bc9538738b9ef",
    "jsonl-gzip-value": "3970b8e02d9fce8964e798b729973c78e0892d8fc6c9efb35d0887ea7090afd8",
    "jsonl-none-record": "9c38566030bb8dbf6ee5dd26edeeab28713d8be4d5f0de37e77d291c565de108",
    "jsonl-none-value": "028f2e76c1ed8197cbd92e866826e6719e620588428e24690a3a3bbda9d7c89b",
    "jsonl-zstd-record": "daef60578278bab6468d664b60b7cd7357b66c3f0feb76bdf7f5aa6ffbdd88fc",
    "jsonl-zstd-value": "3d06794769771e48fd22dc0e8ab738f3f70aa3fa3480eb3ef40c6357813ef490",
    "parquet-gzip-record": "a7e509d59665e89ca7a4c0969c186fd9f39829f7dc7d8710fe6dc34802146309",
    "parquet-none-record": "347406ff6951a9b5baedb892f3c23bbbdee3314ce489e6a76b3ab4ac9943a33d",
    "parquet-snappy-record": "5263bd9bcd3d7fc56e436d9c68c15346ce73de3ee201bfd3afbfc0b857d032f1",
    "parquet-zstd-record": "e0787b8fca5763bd5eae00652d48ad11f51d9f137b57dea714a050c9cf287e24",
}  # fmt: skip


def digits(seed: int) -> bytes:
    return hashlib.sha256(b"%d" % seed).hexdigest().encode()


@cache
def records() -> tuple[Row, ...]:
    """Odd ones, ordinary ones, and one so large that slices, blocks and row groups end."""
    ordinary = [
        Row(
            offset=1000 + i * 2,
            timestamp=1_763_700_000_000 + i * 37 % 1000,
            timestamp_type=i % 2,
            key=digits(i % 100)[:8],
            value=b'{"id":%d,"session":"%s","items":[%s]}' % (i, digits(i), b",".join([digits(i % 7)[:5]] * (i % 40))),
            headers=(("trace", digits(-i)[:16]), ("source", b"web"), ("source", None))[: i % 4],
        )
        for i in range(4000)
    ]
    large = Row(100_000, LAST_MS, 0, b"large", b'"%s"' % (b"0123456789" * 3_500_000))
    behind = [row._replace(offset=row.offset + 100_000) for row in ordinary[:500]]
    return (*[row for row in ODD if row.offset < 1000], *ordinary, large, *behind)


@every_case
def test_the_bytes_are_those_of_the_last_version(case: Case) -> None:
    found = hashlib.sha256(case.encode(cut(fit_for(case, records()), 700))).hexdigest()
    assert SHA256.get("-".join(case)) == found, (
        f"The bytes of {'-'.join(case)} are not those of the last version. A run that is repeated must write the same "
        "bytes, so undo what changed them (an upgrade of a library? a setting?); or, if it is wanted, raise "
        "kafka_archiver.plan.ENCODING, so that plans of the older code are refused instead of being written "
        f'differently, say so in CHANGELOG.md, and put this here: "{"-".join(case)}": "{found}"'
    )

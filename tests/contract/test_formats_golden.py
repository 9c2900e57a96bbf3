"""The exact bytes of every format, so that nothing changes them unnoticed: no library upgrade, no setting."""

import hashlib
from functools import cache

import pytest

from kafka_archiver.records.formats.base import HasSidecar
from tests.support.chunks import LAST_MS, Row, batch, cut
from tests.support.formats import ODD, Case, every_case, fit_for

pytestmark = pytest.mark.contract

# The records below in every way to write them. ISA-L, which makes the gzip ones, was never run on another kind of
# CPU than x86-64; should it give other bytes there, one archive must not be written on both.
SHA256 = {
    "avro-bzip2-record": "74098f9b4ad6f0bbef8589cc703282fdfb0508feff7296ca4fb9ca6a54223ac8",
    "avro-deflate-record": "c78323b992c04423452cfe64fdf7ee7039367776728b83f3476d5f04a143908c",
    "avro-gzip-record": "c78323b992c04423452cfe64fdf7ee7039367776728b83f3476d5f04a143908c",
    "avro-none-record": "f0925ed7c0fa72459455fb819159a0613cf492d034209194c634b9c0f972c95e",
    "avro-snappy-record": "79018ef2e264f7c01fda38abedc61f27876f8e1ee39a44650de1b828c8372b6e",
    "avro-zstd-record": "0c11f4eb4f251c3b414411e1c49d7d68f30676abf1f167c78a0832ed77419dd9",
    "avro-zstd-record-index=True": "0c11f4eb4f251c3b414411e1c49d7d68f30676abf1f167c78a0832ed77419dd9",
    "block_gzip-gzip-record": "397a1cf1cc31ee617780685c6d0ece5a9c7fcd2a1fa6b7d6fe1e465451ca7522",
    "block_gzip-gzip-record-block_bytes=65536": "d165430dee4e49fa25432e395f0306feda2f23e8c580455fbf0347ed0959324c",
    "block_gzip-gzip-value": "31514b94cc681660a5d70a11273a0b5d92c2348a89090f0139c76949139683fb",
    "block_gzip-gzip-value-block_bytes=65536": "9f07d4705991a9be8aa1f4b33c650b20c48d13fb148c67c69bd4994f804577a0",
    "bytes-gzip-value": "db8b2efbe31c2ba2e51888e2560966c09c310a46a662c00790e26f634618b9a4",
    "bytes-none-value": "81c5dada00177cd7e2fd6e8bce14fd7c33d75bccf46f4677e28c6733994b05ce",
    "bytes-zstd-value": "a034745d48ee09d8df76119ae6fc753260b1c06fa54f5fa4cef063e1e1240996",
    "csv-gzip-record": "7880da9ec668a1e01b77a95cc6dcf9fada0fa287a28a627295a9e8a60b4de246",
    "csv-gzip-value": "2aca4093325ff03af883ec12420ae8683cc7a3b6959edd816d3a7908236b7f91",
    "csv-none-record": "8ef988115366cd0bc9a33b66fcc705805306a1b6ece655e3feeae890e61b3cdc",
    "csv-none-value": "5cde57ca55d5caf977dde0fa08730a6528602872503bea1f7afb588b1efdcac4",
    "csv-zstd-record": "9a38cc7a4a53119d020ddce872ffa6265aef28b6c1b490816f071bf8c011512a",
    "csv-zstd-value": "3d52c2d04e45773bb2879be89b80b8667068f4a7c12aea4fd9c9792ff618aa9f",
    "jsonl-brotli-value": "f6c03201cb35f5b7dee9a988776fcf516fbf710eaa60f49b2762230cafbebd8f",
    "jsonl-bzip2-value": "e82715e58c3e0faa91a88648c12c08b1552ae1a721bd316658e0c16b8b82b4d7",
    "jsonl-deflate-value": "eb9e3d7d335f2898f4636ed2e7c945e5781b0ee3aee456ca907207a3fd247fe0",
    "jsonl-gzip-record": "397a1cf1cc31ee617780685c6d0ece5a9c7fcd2a1fa6b7d6fe1e465451ca7522",
    "jsonl-gzip-value": "31514b94cc681660a5d70a11273a0b5d92c2348a89090f0139c76949139683fb",
    "jsonl-lz4-value": "23c1e9a98bc4c4216e5570e6b2ce63b6be10a28ce75cd5f2a0d118b2aa7985e9",
    "jsonl-none-record": "9c38566030bb8dbf6ee5dd26edeeab28713d8be4d5f0de37e77d291c565de108",
    "jsonl-none-value": "028f2e76c1ed8197cbd92e866826e6719e620588428e24690a3a3bbda9d7c89b",
    "jsonl-snappy-value": "63389818e57f43b3c2d08a00f51e180693d8483c3d33b3f2f009f64d20ea1b98",
    "jsonl-zstd-record": "daef60578278bab6468d664b60b7cd7357b66c3f0feb76bdf7f5aa6ffbdd88fc",
    "jsonl-zstd-value": "3d06794769771e48fd22dc0e8ab738f3f70aa3fa3480eb3ef40c6357813ef490",
    "jsonl-zstd-record-index=True": "5bb75fbd1e8071cf3ce225bbbc1aae15c2684303139f90cbe4e37ad90f0ea119",
    "jsonl-zstd-value-index=True": "55bd753b80e9db023055a39b79ff2c5a24ef60071c74af9507ebb265ca6a35b4",
    "mak-gzip-record": "2281d5d0d42d6ecde7114d7b88000df35f512f01fa97330cfc3e687b103b5b3c",
    "mak-gzip-record-version=2": "73c78f5674766456fdb90a215dfb3240c0e052de205971ccc3d4ef36a949db7a",
    "mak-none-record": "792faf3190b10f4c01602a729d61a1848659a19d28cbedbe4d3a3ea707477224",
    "mak-none-record-version=2": "4995c273c803a19480eeba28f3bd330139a19683652dac216f9c85e4702f5cd6",
    "mak-zstd-record": "cf1cb89a6f7232691c24c792830a0a0a0255a6fd8c0b32094e5779b716130cad",
    "mak-zstd-record-version=2": "2604b5d352fa5f6adc0d7cba28532a0aa7bbc4ce3b37809e0c3d8f58a85df710",
    "parquet-brotli-record": "87c514699ebb1904421e1a53f9c12c20d40ab6de536277b4d3f39b5bcb89e96a",
    "parquet-gzip-record": "a7e509d59665e89ca7a4c0969c186fd9f39829f7dc7d8710fe6dc34802146309",
    "parquet-lz4-record": "677c7e116580ca3e33c4360938a08587d6f1493c7d1b0ef8810b089f0842a68a",
    "parquet-none-record": "347406ff6951a9b5baedb892f3c23bbbdee3314ce489e6a76b3ab4ac9943a33d",
    "parquet-snappy-record": "5263bd9bcd3d7fc56e436d9c68c15346ce73de3ee201bfd3afbfc0b857d032f1",
    "parquet-zstd-record": "e0787b8fca5763bd5eae00652d48ad11f51d9f137b57dea714a050c9cf287e24",
    "text-gzip-value": "d5b62fbbc3b3c4faa7fc6d034d366a9436981571554e851735a9aa19b86e798a",
    "text-none-value": "2e18f70cc8a39df147d52b23322913991a6e9a68e19b3b20305b9eddcb3cd98a",
    "text-zstd-value": "3f97945dcdce8541f9093f2ed75a4eed5099fe41b82635e60caefeb2fec83e41",
}  # fmt: skip


def digits(seed: int) -> bytes:
    return hashlib.sha256(b"%d" % seed).hexdigest().encode()


@cache
def records(large: int = 35_000_000) -> tuple[Row, ...]:
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
    large_row = Row(100_000, LAST_MS, 0, b"large", b'"%s"' % (b"0123456789" * (large // 10)))
    behind = [row._replace(offset=row.offset + 100_000) for row in ordinary[:500]]
    return (*[row for row in ODD if row.offset < 1000], *ordinary, large_row, *behind)


def test_an_index_is_that_of_the_last_version() -> None:
    """All values of a chunk are one line: in the order and the form of kafka-connect-s3."""
    case = Case("block_gzip", "gzip", "value", (("block_bytes", 65536),))
    encoder = case.encoder()
    rows = [Row(5, 0, value=b"x" * 65000), Row(7, 0, value=b"x" * 535), Row(8, 0, value=None), Row(9, 0, value=b"{}")]
    sizes = [len(bytes(piece)) for piece in [*encoder.write(batch(rows)), *encoder.finish()]]
    assert isinstance(encoder, HasSidecar)
    assert encoder.sidecar() == (
        b'{"chunks":[{"byte_length_uncompressed":65001,"num_records":1,"byte_length":%d,"byte_offset":0,'
        b'"first_record_offset":5},{"byte_length_uncompressed":544,"num_records":3,"byte_length":%d,"byte_offset":%d,'
        b'"first_record_offset":7}]}' % (sizes[0], sum(sizes[1:]), sizes[0])
    )


@every_case
def test_the_bytes_are_those_of_the_last_version(case: Case) -> None:
    # bzip2 is slow with what repeats itself, and has ended several of its blocks before.
    rows = records(1_000_000) if case.codec == "bzip2" else records()
    digest = hashlib.sha256(case.encode(cut(fit_for(case, rows), 700))).hexdigest()
    assert SHA256.get(case.name) == digest, (
        f"The bytes of {case.name} are not those of the last version. A run that is repeated must write the same "
        "bytes, so undo what changed them (an upgrade of a library? a setting?); or, if it is wanted, raise "
        "the format's `encoding`, so that plans of the older code are refused instead of being written "
        f'differently, say so in CHANGELOG.md, and put this here: "{case.name}": "{digest}"'
    )

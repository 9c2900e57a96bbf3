"""The options of a store in its requests, as the server sees them: on every kind of request that takes them."""

import base64
import hashlib
import json
from collections.abc import Iterator

import pytest

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.messages.errors import ArchiverError, ConfigError, PermanentError
from kafka_archiver.store.s3 import S3Store
from kafka_archiver.values.checksum import crc32
from tests.support.faulty_s3 import FaultyS3, refuse
from tests.unit.conftest import TRIES, OpenFaulty

pytestmark = pytest.mark.unit

KEY, DATA = "a/key", b"some bytes"
CUSTOMER = base64.b64encode(bytes(range(32))).decode()
CUSTOMER_MD5 = base64.b64encode(hashlib.md5(bytes(range(32))).digest()).decode()
SSE = "x-amz-server-side-encryption"
WRITES = {"put_object", "create", "replace", "create_multipart_upload"}
PARTS = {"upload_part", "complete_multipart_upload"}
READS = {"get_object", "head_object"}
OBJECTS = WRITES | PARTS | READS | {"delete_object", "abort_multipart_upload"}
LISTS = {"list_objects_v2", "list_multipart_uploads"}
ALL = OBJECTS | LISTS | {"head_bucket"}
# By Amazon's reference of S3: the options, and for each header its value and the requests that have it.
CASES: list[tuple[dict[str, str], dict[str, tuple[str, set[str]]]]] = [
    ({"sse": "AES256"}, {SSE: ("AES256", WRITES)}),
    ({"sse": "aws:kms"}, {SSE: ("aws:kms", WRITES)}),
    (
        {"sse": "aws:kms", "sse_kms_key_id": "alias/a", "sse_bucket_key": "true", "sse_kms_context": '{"a": "b"}'},
        {
            SSE: ("aws:kms", WRITES),
            f"{SSE}-aws-kms-key-id": ("alias/a", WRITES),
            f"{SSE}-bucket-key-enabled": ("true", WRITES),
            f"{SSE}-context": (base64.b64encode(b'{"a": "b"}').decode(), WRITES),
        },
    ),
    (
        {"sse_customer": "true", "sse_customer_secret": CUSTOMER},
        {
            f"{SSE}-customer-algorithm": ("AES256", WRITES | PARTS | READS),
            f"{SSE}-customer-key": (CUSTOMER, WRITES | PARTS | READS),
            f"{SSE}-customer-key-md5": (CUSTOMER_MD5, WRITES | PARTS | READS),
        },
    ),
    ({"storage_class": "STANDARD_IA"}, {"x-amz-storage-class": ("STANDARD_IA", {"create_multipart_upload"})}),
    ({"tags": "a=b&c=d+e"}, {"x-amz-tagging": ("a=b&c=d+e", WRITES)}),
    ({"acl": "bucket-owner-full-control"}, {"x-amz-acl": ("bucket-owner-full-control", WRITES)}),
    ({"requester_pays": "true"}, {"x-amz-request-payer": ("requester", OBJECTS | LISTS)}),
    ({"bucket_owner": "123456789012"}, {"x-amz-expected-bucket-owner": ("123456789012", ALL)}),
]


def use(store: S3Store) -> None:
    """Every kind of request once."""
    store.put(KEY, DATA)
    store.create("created", DATA)
    version = store.version(KEY)
    assert version
    store.replace(KEY, b"other", version.etag)
    store.read(KEY, 0, 2)
    store.head(KEY)
    store.delete(KEY)
    list(store.list(""))
    store.now()
    begun = store.start_upload(KEY)
    list(store.list_uploads(""))
    store.complete_upload(begun._replace(parts=(store.upload_part(begun, 1, DATA, crc32(DATA)),)))
    store.abort_upload(KEY, store.start_upload(KEY).upload_id)


def own_requests(server: FaultyS3) -> Iterator[tuple[str, dict[str, str]]]:
    """The requests, each with its headers in small letters."""
    for operation, headers in zip(server.requests, server.headers, strict=True):
        yield operation, {name.lower(): value for name, value in headers.items()}


@pytest.mark.parametrize(("options", "expected"), CASES, ids=lambda case: " ".join(case))
def test_each_request_that_takes_it_has_it(
    server: FaultyS3, connect: OpenFaulty, options: dict[str, str], expected: dict[str, tuple[str, set[str]]]
) -> None:
    use(connect(**options))
    assert set(server.requests) == ALL
    for operation, headers in own_requests(server):
        for name, (value, operations) in expected.items():
            assert headers.get(name) == (value if operation in operations else None), (operation, name)


def test_without_options_no_request_has_any(server: FaultyS3, store: S3Store) -> None:
    use(store)
    known = {name for _, expected in CASES for name in expected}
    assert not [
        (operation, known & headers.keys()) for operation, headers in own_requests(server) if known & headers.keys()
    ]


@pytest.mark.parametrize(
    "options", [{"sse": "AES256"}, {"sse": "aws:kms"}, {"sse_customer": "true", "sse_customer_secret": CUSTOMER}]
)
def test_a_store_that_does_not_encrypt_is_found_out_by_the_first_write(
    server: FaultyS3, connect: OpenFaulty, options: dict[str, str]
) -> None:
    server.confirms = False
    store = connect(**options)
    begun = store.start_upload(KEY)
    for write in (
        lambda key: store.put(key, DATA),
        lambda key: store.create(f"{key}/new", DATA),
        lambda _: store.upload_part(begun, 1, DATA, crc32(DATA)),
    ):
        with pytest.raises(PermanentError, match=r"does not encrypt as `store.encryption` says") as caught:
            write(KEY)
        assert CUSTOMER not in str(caught.value)


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("encryption: none", {}),
        ("encryption: sse-s3", {"sse": "AES256"}),
        ("encryption: sse-kms", {"sse": "aws:kms"}),
        ("encryption: {sse-kms: {key_id: k, bucket_key: true}}",
         {"sse": "aws:kms", "sse_kms_key_id": "k", "sse_bucket_key": "true"}),
        ("encryption: {sse-kms: {context: {b: c, a: é}}}",
         {"sse": "aws:kms", "sse_kms_context": json.dumps({"a": "é", "b": "c"})}),
        ("encryption: {sse-c: {connection: key}}", {"sse_customer": "true"}),
        ("storage_class: ONEZONE_IA", {"storage_class": "ONEZONE_IA"}),
        ("tags: {team: data, cost: a&b}", {"tags": "team=data&cost=a%26b"}),
        ("acl: private", {"acl": "private"}),
        ("requester_pays: true", {"requester_pays": "true"}),
        ('bucket_owner: "123456789012"', {"bucket_owner": "123456789012"}),
    ],
)  # fmt: skip
def test_the_yaml_as_options(yaml: str, expected: dict[str, str]) -> None:
    text = f"archive: a\nsource: {{topics: [t]}}\nstore:\n  url: s3://b/p\n  {yaml}\n"
    archive = parse_archive(text, "a.yaml")
    assert archive.store.requests == expected
    assert Archive.model_validate(archive.model_dump()) == archive
    assert Archive.model_validate_json(archive.model_dump_json(by_alias=True)) == archive


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("encryption: sse-c", "`store.encryption`: expected none, sse-s3, sse-kms, or a mapping"),
        ("encryption: {sse-kms: {}, sse-c: {connection: x}}", "`store.encryption`: expected none, sse-s3"),
        ("encryption: {sse-c: {}}", "`store.encryption.sse-c.connection` is required"),
        ("encryption: {sse-kms: }", "`store.encryption`: expected none, sse-s3"),
        ("encryption: {}", "`store.encryption`: expected none, sse-s3"),
        ("encryption: {kms: {}}", "`store.encryption.kms` is not a key"),
        ("storage_class: GLACIER", "`store.storage_class`: expected a class whose objects can be read at once"),
        ("acl: everybody", "`store.acl`: expected 'private', 'public-read'"),
        ("tags: {a: 5}", "`store.tags.a`: expected"),
        ("bucket_owner: 12", "`store.bucket_owner`: expected text"),
    ],
)
def test_a_wrong_yaml_is_an_error_that_names_the_key(yaml: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_archive(f"archive: a\nsource: {{topics: [t]}}\nstore:\n  url: s3://b/p\n  {yaml}\n", "a.yaml")
    assert message in str(caught.value)


def test_a_key_of_another_length_is_refused_and_not_shown(connect: OpenFaulty) -> None:
    with pytest.raises(ConfigError, match="expected 32 bytes in base64") as caught:
        connect(sse_customer="true", sse_customer_secret="bm90IHRoZSBrZXk=")
    assert "bm90" not in str(caught.value)
    with pytest.raises(ConfigError, match="expected both or neither"):
        connect(sse_customer="true")


@pytest.mark.parametrize(
    ("options", "status", "hint"),
    [
        ({"sse": "aws:kms"}, 500, "`store.encryption` asks for SSE-KMS: this needs a store with a key management"),
        ({"sse": "aws:kms"}, 403, "credentials with kms:GenerateDataKey and kms:Decrypt"),
        ({"sse": "AES256"}, 501, "a store without this encryption may answer so"),
        # Too early is no refusal.
        ({"sse": "aws:kms"}, 503, ""),
        ({}, 500, ""),
    ],
)
def test_a_refused_write_says_that_it_was_to_be_encrypted(
    server: FaultyS3, connect: OpenFaulty, options: dict[str, str], status: int, hint: str
) -> None:
    server.fail("put_object", *[refuse(status, "Whatever")] * (2 * TRIES))
    with pytest.raises(ArchiverError) as caught:
        connect(**options).put(KEY, DATA)
    assert hint in str(caught.value)
    assert ("store.encryption" in str(caught.value)) == bool(hint)

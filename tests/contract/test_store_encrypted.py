"""Extra headers of requests, on the real server: it encrypts, and keeps tags and class; every step works on it."""

import base64
import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError

from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.state.doctor.store import check_store
from kafka_archiver.store import open_store
from kafka_archiver.store.base import MIN_PART
from kafka_archiver.store.object_check import compare
from kafka_archiver.values.checksum import crc32
from kafka_archiver.values.ranges import Range, TopicPartition
from scripts.stack.s3 import S3
from tests.support.lake import Lake, hour
from tests.support.s3_with_kms import KMS_KEY

pytestmark = pytest.mark.contract

P0 = TopicPartition("orders", 0)
KEY = bytes(range(32))
BESIDES = {
    "SSE-S3": {"sse": "AES256", "tags": "team=data&cost=a%26b", "storage_class": "STANDARD_IA", "acl": "private"},
    "SSE-KMS": {
        "sse": "aws:kms",
        "sse_kms_key_id": KMS_KEY,
        "sse_kms_context": '{"team": "data"}',
        "sse_bucket_key": "true",
    },
    "SSE-C": {"sse_customer": "true", "sse_customer_secret": base64.b64encode(KEY).decode()},
}
OURS: dict[str, dict[str, Any]] = {
    "SSE-S3": {},
    "SSE-KMS": {},
    "SSE-C": {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": KEY},
}
every_way = pytest.mark.parametrize("way", BESIDES)


def url(s3: S3) -> str:
    return f"s3://{s3.bucket}/{uuid.uuid4().hex}"


@every_way
def test_every_step_works_and_every_object_is_encrypted(s3: S3, way: str) -> None:
    place = url(s3)
    store = open_store(place, {**s3.options(), **BESIDES[way]})
    lake = Lake(store, {P0: Range(0, 4)}, {"format": "block_gzip", "content": "record"})
    lake.run(3)
    [gone, *_] = lake.stored()
    store.delete(gone)
    lake.run(3)
    lake.rebuild(hour(3).id)
    assert lake.audit(deep=True).findings == ()
    assert {check.severity for check in check_store(store, "a")} == {"ok"}
    client, prefix = s3.client(), place.removeprefix(f"s3://{s3.bucket}/") + "/"
    for key in (stat.key for stat in store.list("")):
        head = client.head_object(Bucket=s3.bucket, Key=prefix + key, **OURS[way])
        algorithm = head.get("ServerSideEncryption") or head["SSECustomerAlgorithm"]
        assert algorithm == ("aws:kms" if way == "SSE-KMS" else "AES256"), key
        if way == "SSE-S3":
            tags = client.get_object_tagging(Bucket=s3.bucket, Key=prefix + key)["TagSet"]
            assert {tag["Key"]: tag["Value"] for tag in tags} == {"team": "data", "cost": "a&b"}
            # Documents are read all the time.
            assert head.get("StorageClass", "STANDARD") == ("STANDARD" if key.startswith("_") else "STANDARD_IA"), key


def test_without_the_customer_s_key_nothing_can_be_read(s3: S3) -> None:
    place = url(s3)
    store, plain = open_store(place, {**s3.options(), **BESIDES["SSE-C"]}), open_store(place, s3.options())
    store.put("k", b"content")
    with pytest.raises(ArchiverError, match=r"needs the customer key that wrote it \(sse-c\)"):
        plain.get("k")
    with pytest.raises(ClientError):
        s3.client().get_object(Bucket=s3.bucket, Key=place.removeprefix(f"s3://{s3.bucket}/") + "/k")
    other = base64.b64encode(bytes(32)).decode()
    wrong = open_store(place, {**s3.options(), "sse_customer": "true", "sse_customer_secret": other})
    with pytest.raises(ArchiverError, match=r"needs the customer key that wrote it \(sse-c\)") as caught:
        wrong.get("k")
    assert other not in str(caught.value)
    assert store.get("k") == b"content"


@every_way
def test_parts_and_ranges_and_conditions(s3: S3, way: str) -> None:
    store = open_store(url(s3), {**s3.options(), **BESIDES[way]})
    slices = [b"a" * MIN_PART, b"bcd"]
    begun = store.start_upload("k")
    parts = tuple(store.upload_part(begun, n, data, crc32(data)) for n, data in enumerate(slices, start=1))
    upload = begun._replace(parts=parts)
    assert store.complete_upload(upload) == store.complete_upload(upload)
    assert store.read("k", MIN_PART - 1, 3) == b"abc"
    assert compare(store, "k", upload.size, upload.checksum).same
    assert store.create("k", b"other") is False
    version = store.version("k")
    assert version
    assert store.replace("k", b"newer", "0" * 32) is False
    assert store.replace("k", b"newer", version.etag) is True
    assert store.get("k") == b"newer"

"""The S3 store.

Bytes are checked both ways without botocore's checksums: Content-MD5 goes with everything sent, the ETag that comes
back is compared when it is an MD5, and what is read must have the length and the ETag that the store says.
"""

import base64
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from kafka_archiver.errors import IntegrityError, PermanentError, TransientError
from kafka_archiver.store.base import Part, PendingUpload, Stat, Version, upload_gone
from kafka_archiver.store.options import S3Options
from kafka_archiver.store.retry import Backoff
from kafka_archiver.store.s3_client import Timeouts, connect
from kafka_archiver.store.s3_errors import FAILURES, Place, code_of, explain

Answer = Mapping[str, Any]
_DEFAULT_BACKOFF, _DEFAULT_TIMEOUTS = Backoff(), Timeouts()


class S3Store:
    """Objects below `s3://bucket/prefix`. Cheap to make: the client behind it is shared within the process."""

    def __init__(
        self,
        bucket: str,
        prefix: str,
        options: S3Options,
        backoff: Backoff = _DEFAULT_BACKOFF,
        timeouts: Timeouts = _DEFAULT_TIMEOUTS,
    ) -> None:
        self.url = f"s3://{bucket}/{prefix}".rstrip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._client = connect(options, timeouts)
        self._place = Place(bucket, self._client.meta.endpoint_url)
        self._backoff = backoff

    def __repr__(self) -> str:
        return f"S3Store({self.url!r} at {self._place.endpoint!r})"

    def get(self, key: str) -> bytes | None:
        found = self.version(key)
        return found and found.data

    def read(self, key: str, start: int, length: int) -> bytes | None:
        wanted = f"bytes={start}-{start + length - 1}"
        answer = self._ask("get_object", key, "NoSuchKey", "InvalidRange", Key=self._prefix + key, Range=wanted)
        if not answer:
            # One answer is empty when there is no object, and when it ends before `start`.
            return None if self.head(key) is None else b""
        data: bytes = answer["Body"]
        return data if "ContentRange" in answer else data[start : start + length]

    def head(self, key: str) -> Stat | None:
        answer = self._ask("head_object", key, "404", Key=self._prefix + key)
        if not answer:
            # An answer to HEAD has no body: it says 404 for a missing bucket too, which is no news of the object.
            self._ask("head_bucket", key)
            return None
        return Stat(key, answer["ContentLength"], _etag(answer), answer["LastModified"].astimezone(UTC))

    def put(self, key: str, data: bytes) -> str:
        return _etag(self._send("put_object", key, data, _md5(data)))

    def create(self, key: str, data: bytes) -> bool:
        return self._put_if(key, data, IfNoneMatch="*")

    def version(self, key: str) -> Version | None:
        return self._backoff.run(lambda: self._read(key))

    def replace(self, key: str, data: bytes, etag: str) -> bool:
        return self._put_if(key, data, IfMatch=f'"{etag}"')

    def now(self) -> datetime:
        date = self._ask("head_bucket", "")["ResponseMetadata"]["HTTPHeaders"].get("date")
        if not date:
            raise PermanentError(f"{self._place.endpoint} answers without a `Date` header; HTTP asks for one")
        return parsedate_to_datetime(date).astimezone(UTC)

    def list(self, prefix: str) -> Iterator[Stat]:
        for page in self._pages("list_objects_v2", prefix, {"ContinuationToken": "NextContinuationToken"}):
            for item in page.get("Contents", ()):
                key = item["Key"].removeprefix(self._prefix)
                yield Stat(key, item["Size"], _etag(item), item["LastModified"].astimezone(UTC))

    def delete(self, key: str) -> None:
        self._ask("delete_object", key, "NoSuchKey", Key=self._prefix + key)

    def start_upload(self, key: str) -> str:
        return str(self._ask("create_multipart_upload", key, Key=self._prefix + key)["UploadId"])

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes | memoryview) -> Part:
        content = bytes(data)
        md5 = _md5(content)
        answer = self._send("upload_part", key, content, md5, "NoSuchUpload", UploadId=upload_id, PartNumber=number)
        if not answer:
            raise upload_gone(self.url, key)
        return Part(etag=_etag(answer), md5=md5.hex(), size=len(content))

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> str:
        listed = [{"PartNumber": number, "ETag": f'"{part.etag}"'} for number, part in enumerate(parts, start=1)]
        answer = self._ask(
            "complete_multipart_upload",
            key,
            "NoSuchUpload",
            Key=self._prefix + key,
            UploadId=upload_id,
            MultipartUpload={"Parts": listed},
        )
        if etag := _etag(answer):
            return etag
        # An earlier try may have completed it although its answer was lost. What is there tells.
        stat = self.head(key)
        if stat is None or stat.etag != PendingUpload(key, upload_id, tuple(parts)).checksum:
            raise upload_gone(self.url, key)
        return stat.etag

    def abort_upload(self, key: str, upload_id: str) -> None:
        self._ask("abort_multipart_upload", key, "NoSuchUpload", Key=self._prefix + key, UploadId=upload_id)

    def list_uploads(self, prefix: str) -> Iterator[tuple[str, str, datetime]]:
        markers = {"KeyMarker": "NextKeyMarker", "UploadIdMarker": "NextUploadIdMarker"}
        for page in self._pages("list_multipart_uploads", prefix, markers):
            for item in page.get("Uploads", ()):
                key = item["Key"].removeprefix(self._prefix)
                yield key, item["UploadId"], item["Initiated"].astimezone(UTC)

    def _pages(self, operation: str, prefix: str, markers: Mapping[str, str]) -> Iterator[Answer]:
        """:param markers: the request's markers, and what the page before calls them."""
        following: dict[str, str] = {}
        while True:
            page = self._ask(operation, prefix, Prefix=self._prefix + prefix, **following)
            yield page
            following = {name: page[source] for name, source in markers.items() if page.get(source)}
            if page.get("IsTruncated") is False:
                return
            if not following:
                raise TransientError(f"{self.url}: the listing of {prefix} broke off without saying where it goes on")

    def _put_if(self, key: str, data: bytes, **condition: str) -> bool:
        """Write an object if the condition holds; where an answer was lost, what is stored tells."""
        md5, tries = _md5(data), 0

        def attempt() -> Answer:
            nonlocal tries
            tries += 1
            # No such key: there is nothing that could be the version asked for.
            return self._write("put_object", key, data, md5, "PreconditionFailed", "NoSuchKey", **condition)

        answer = self._backoff.run(attempt)
        if answer and not _differs(answer, md5):
            return True
        if not answer and tries == 1:
            return False
        # Refused after a try whose answer was lost: that try may have written it.
        same = self.get(key) == data
        if answer and not same:
            # Not replaced: others may have read it already, and must not work by another document than we.
            raise IntegrityError(
                f"{self.url}: {key} was written just now, but does not hold what was sent; delete it and try again"
            )
        return same

    def _read(self, key: str) -> Version | None:
        """One try at an object's bytes."""
        answer = self._request("get_object", key, "NoSuchKey", Key=self._prefix + key)
        if not answer:
            return None
        data: bytes = answer["Body"]
        if _differs(answer, _md5(data)):
            raise TransientError(
                f"{self.url}: the {len(data)} bytes read of {key} do not have its ETag {_etag(answer)}"
            )
        return Version(data, _etag(answer))

    def _send(self, operation: str, key: str, data: bytes, md5: bytes, *absent: str, **more: object) -> Answer:
        """Send bytes until the store's MD5 of them is ours."""

        def attempt() -> Answer:
            answer = self._write(operation, key, data, md5, *absent, **more)
            if answer and _differs(answer, md5):
                raise TransientError(
                    f"{self.url}: the {len(data)} bytes sent of {key} have the MD5 {md5.hex()}, "
                    f"but the store says {_etag(answer) or 'nothing'}"
                )
            return answer

        return self._backoff.run(attempt)

    def _write(self, operation: str, key: str, data: bytes, md5: bytes, *absent: str, **more: object) -> Answer:
        """One try at sending bytes; the store compares them with their MD5 on arrival."""
        content_md5 = base64.b64encode(md5).decode()
        return self._request(operation, key, *absent, Key=self._prefix + key, Body=data, ContentMD5=content_md5, **more)

    def _ask(self, operation: str, key: str, *absent: str, **parameters: object) -> Answer:
        """`_request`, tried again while that may help."""
        return self._backoff.run(functools.partial(self._request, operation, key, *absent, **parameters))

    def _request(self, operation: str, key: str, *absent: str, **parameters: object) -> Answer:
        """One request, tried once. The answer is empty when the store says one of the codes in `absent`."""
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(Bucket=self._place.bucket, **parameters)
            if "Body" in answer:
                answer["Body"] = answer["Body"].read()
        except FAILURES as error:
            if code_of(error) in absent:
                return {}
            # Its text may hold a session token, so it must not be in the traceback.
            raise explain(error, self._place, operation, key) from None
        return answer


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _etag(answer: Answer) -> str:
    return str(answer.get("ETag", "")).strip('"')


def _differs(answer: Answer, md5: bytes) -> bool:
    """Whether the store's ETag is the MD5 of other bytes. Encrypted and multipart objects have no MD5 to compare."""
    encrypted = answer.get("ServerSideEncryption", "AES256") != "AES256" or "SSECustomerAlgorithm" in answer
    etag = _etag(answer)
    return not encrypted and "-" not in etag and etag != md5.hex()

"""The S3 store.

Bytes are checked in both directions, by checksums computed before they are sent. A store with S3's additional checksums
compares each part and each whole object with our CRC-32. Other stores get Content-MD5 with each part, and the returned
ETag is compared if it is an MD5. The store's answers show whether it has additional checksums.
"""

import functools
import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from kafka_archiver.messages.errors import IntegrityError, PermanentError, TransientError
from kafka_archiver.store.base import Body, PendingUpload, Stat, StoredObject, UploadedPart, upload_gone
from kafka_archiver.store.object_check import compare
from kafka_archiver.store.options import S3Options
from kafka_archiver.store.retry import Backoff
from kafka_archiver.store.s3_client import Timeouts, connect
from kafka_archiver.store.s3_errors import FAILURES, Bucket, code_of, explain, may_not_know
from kafka_archiver.store.s3_requests import ExtraParameters
from kafka_archiver.store.s3_sums import (
    OF_THE_WHOLE,
    OPAQUE,
    TELL,
    Answer,
    Sums,
    checksum_text,
    confirms,
    crc_of,
    encoded,
    etag_of,
)
from kafka_archiver.values.checksum import spelt

_NONE: Mapping[str, str] = {}
log = logging.getLogger(__name__)
_DEFAULT_BACKOFF, _DEFAULT_TIMEOUTS = Backoff(), Timeouts()


def open_s3(bucket: str, prefix: str, options: Mapping[str, str], backoff: Backoff) -> "S3Store":
    """Open the store of `s3://bucket/prefix`. Sends no request. Raises ConfigError."""
    return S3Store(bucket, prefix, S3Options.parse(options), backoff)


class S3Store:
    """Objects below `s3://bucket/prefix`. Cheap to create: the process shares one boto3 client."""

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
        self._connection = connect(options, timeouts)
        self._bucket = Bucket(bucket, self._connection.client.meta.endpoint_url)
        self._extra_parameters = ExtraParameters(options, self._connection.client)
        self._md5_etags = options.has_md5_etags
        self._backoff = backoff

    def __repr__(self) -> str:
        return f"S3Store({self.url!r} at {self._bucket.endpoint!r})"

    def get(self, key: str) -> bytes | None:
        version = self.version(key)
        return version and version.data

    def read(self, key: str, start: int, length: int) -> bytes | None:
        byte_range = f"bytes={start}-{start + length - 1}"
        answer = self._ask("get_object", key, "NoSuchKey", "InvalidRange", Key=self._prefix + key, Range=byte_range)
        if not answer:
            # Empty in two cases: there is no object, or it ends before `start`.
            return None if self.head(key) is None else b""
        data: bytes = answer["Body"]
        return data if "ContentRange" in answer else data[start : start + length]

    def head(self, key: str) -> Stat | None:
        answer = self._ask("head_object", key, "404", sums=TELL, Key=self._prefix + key)
        if not answer:
            # An answer to HEAD has no body, so 404 may also mean a missing bucket: check the bucket.
            self._ask("head_bucket", key)
            return None
        crc, modified = crc_of(answer), answer["LastModified"].astimezone(UTC)
        return Stat(key, answer["ContentLength"], etag_of(answer), modified, None if crc is None else spelt(crc))

    def put(self, key: str, data: bytes) -> str:
        sums = Sums.of(data)
        return etag_of(self._send(key, sums, lambda: self._put(key, data, sums)))

    def create(self, key: str, data: bytes) -> bool:
        return self._put_if(key, data, IfNoneMatch="*")

    def version(self, key: str) -> StoredObject | None:
        return self._backoff.run(lambda: self._read(key))

    def replace(self, key: str, data: bytes, etag: str) -> bool:
        return self._put_if(key, data, IfMatch=f'"{etag}"')

    def now(self) -> datetime:
        date = self._ask("head_bucket", "")["ResponseMetadata"]["HTTPHeaders"].get("date")
        if not date:
            raise PermanentError(f"{self._bucket.endpoint} answers without a `Date` header, which HTTP requires")
        return parsedate_to_datetime(date).astimezone(UTC)

    def list(self, prefix: str) -> Iterator[Stat]:
        for page in self._pages("list_objects_v2", prefix, {"ContinuationToken": "NextContinuationToken"}):
            for item in page.get("Contents", ()):
                key = item["Key"].removeprefix(self._prefix)
                yield Stat(key, item["Size"], etag_of(item), item["LastModified"].astimezone(UTC))

    def delete(self, key: str) -> None:
        self._ask("delete_object", key, "NoSuchKey", Key=self._prefix + key)

    def delete_version(self, key: str, etag: str) -> bool:
        expected = "PreconditionFailed", "NoSuchKey"
        answer = self._ask("delete_object", key, *expected, Key=self._prefix + key, IfMatch=f'"{etag}"')
        return bool(answer) or self.head(key) is None

    def start_upload(self, key: str) -> PendingUpload:
        answer = self._ask("create_multipart_upload", key, sums=OF_THE_WHOLE, Key=self._prefix + key)
        upload_id = str(answer["UploadId"])
        checksum_fields = {name: answer.get(name) for name in OF_THE_WHOLE}
        if checksum_fields["ChecksumAlgorithm"] and checksum_fields != OF_THE_WHOLE and self._connection.checksums:
            # Some stores have checksums of parts only, and then require them: useless, since they depend on part sizes.
            self._without_checksums(f"has no checksums of whole objects ({checksum_fields['ChecksumAlgorithm']})")
            self.abort_upload(key, upload_id)
            return self.start_upload(key)
        return PendingUpload(key, upload_id, checked=checksum_fields == OF_THE_WHOLE)

    def upload_part(self, upload: PendingUpload, number: int, data: Body, crc32: int) -> UploadedPart:
        size = len(data) if isinstance(data, bytes) else data.seek(0, os.SEEK_END)
        sums = Sums(crc32) if upload.checked else Sums.of(data)
        if sums.crc32 != crc32:
            raise TransientError(
                f"{self.url}: part {number} of {upload.key} has changed since it was encoded: local disk or memory "
                "damaged it. The next attempt of the task writes the object again"
            )
        parameters: dict[str, Any] = {
            "Key": self._prefix + upload.key,
            "UploadId": upload.upload_id,
            "PartNumber": number,
            "Body": data,
            **(sums.content_md5 or sums.checksum),
        }

        def attempt() -> Answer:
            if not isinstance(data, bytes):
                data.seek(0)
            return self._request("upload_part", upload.key, "NoSuchUpload", **parameters)

        answer = self._send(upload.key, sums, attempt)
        if not answer:
            raise upload_gone(self.url, upload.key)
        return UploadedPart(etag_of(answer), crc32, size)

    def complete_upload(self, upload: PendingUpload) -> str:
        listed = [
            {"PartNumber": number, "ETag": f'"{part.etag}"', **(encoded(part.crc32) if upload.checked else {})}
            for number, part in enumerate(upload.parts, start=1)
        ]
        answer = self._ask(
            "complete_multipart_upload",
            upload.key,
            "NoSuchUpload",
            Key=self._prefix + upload.key,
            UploadId=upload.upload_id,
            MultipartUpload={"Parts": listed},
            **({"ChecksumType": "FULL_OBJECT", **encoded(upload.crc32)} if upload.checked else {}),
        )
        if answer and confirms(answer, upload):
            return etag_of(answer)
        # An earlier try may have completed the upload although its answer was lost: compare the stored object.
        difference = compare(self, upload.key, upload.size, upload.checksum, upload.md5_etag)
        if difference.same and difference.stat:
            return difference.stat.etag
        if not etag_of(answer):
            raise upload_gone(self.url, upload.key)
        raise IntegrityError(
            f"{self.url}: {upload.key}: expected {upload.size} bytes with checksum {upload.checksum}, but the store "
            f"has {difference}. Run the archive task again; if the error comes back, something between this machine "
            "and the store changes data"
        )

    def abort_upload(self, key: str, upload_id: str) -> None:
        self._ask("abort_multipart_upload", key, "NoSuchUpload", Key=self._prefix + key, UploadId=upload_id)

    def list_uploads(self, prefix: str) -> Iterator[tuple[str, str, datetime]]:
        markers = {"KeyMarker": "NextKeyMarker", "UploadIdMarker": "NextUploadIdMarker"}
        for page in self._pages("list_multipart_uploads", prefix, markers):
            for item in page.get("Uploads", ()):
                key = item["Key"].removeprefix(self._prefix)
                yield key, item["UploadId"], item["Initiated"].astimezone(UTC)

    def _pages(self, operation: str, prefix: str, markers: Mapping[str, str]) -> Iterator[Answer]:
        """:param markers: the request's markers, each with its name in the previous page."""
        following: dict[str, str] = {}
        while True:
            page = self._ask(operation, prefix, Prefix=self._prefix + prefix, **following)
            yield page
            following = {name: page[source] for name, source in markers.items() if page.get(source)}
            if page.get("IsTruncated") is False:
                return
            if not following:
                raise TransientError(f"{self.url}: the listing of {prefix} is incomplete and has no marker to continue")

    def _put_if(self, key: str, data: bytes, **condition: str) -> bool:
        """Write an object if the condition holds; after a lost answer, the stored bytes decide."""
        sums, tries = Sums.of(data), 0

        def attempt() -> Answer:
            nonlocal tries
            tries += 1
            # NoSuchKey answers If-Match if there is no object.
            return self._put(key, data, sums, "PreconditionFailed", "NoSuchKey", **condition)

        answer = self._backoff.run(attempt)
        if answer and not sums.differ(answer):
            return True
        if not answer and tries == 1:
            return False
        # Refused after a lost answer: the earlier try may have written the object.
        same = self.get(key) == data
        if answer and not same:
            # Do not replace it: others may have read it already, and all must work with the same document.
            raise IntegrityError(
                f"{self.url}: {key} was just written, but with other bytes than were sent; delete it and try again"
            )
        return same

    def _read(self, key: str) -> StoredObject | None:
        """Read an object's bytes, without retries."""
        answer = self._request("get_object", key, "NoSuchKey", sums=TELL, Key=self._prefix + key)
        if not answer:
            return None
        data: bytes = answer["Body"]
        if Sums.of(data).differ(answer):
            raise TransientError(
                f"{self.url}: the {len(data)} bytes read of {key} do not have its {checksum_text(answer)}"
            )
        return StoredObject(data, etag_of(answer))

    def _put(self, key: str, data: bytes, sums: Sums, *absent: str, **condition: str) -> Answer:
        """Write an object, without retries. The store checks both sums if it knows both."""
        parameters = {"Key": self._prefix + key, "Body": data, **sums.content_md5, **condition}
        return self._request("put_object", key, *absent, sums=sums.checksum, **parameters)

    def _send(self, key: str, sums: Sums, attempt: Callable[[], Answer]) -> Answer:
        """Send bytes, and retry if the store answers with a different checksum."""

        def compared() -> Answer:
            answer = attempt()
            if answer and sums.differ(answer):
                raise TransientError(
                    f"{self.url}: the bytes sent for {key} have {sums}, but the store has {checksum_text(answer)}"
                )
            return answer

        return self._backoff.run(compared)

    def _ask(self, operation: str, key: str, *absent: str, **parameters: Any) -> Answer:
        """`_request` with retries."""
        return self._backoff.run(functools.partial(self._request, operation, key, *absent, **parameters))

    def _request(
        self, operation: str, key: str, *absent: str, sums: Mapping[str, str] = _NONE, **parameters: Any
    ) -> Answer:
        """One request without retries. The answer is empty if the store's error code is in `absent`.

        :param sums: parameters of additional checksums. If the store refuses them, but accepts the request without
            them, no later request has them.
        """
        asked = sums if self._connection.checksums else _NONE
        answer = self._try(operation, key, absent, {**parameters, **asked}, optional=bool(asked))
        if answer is None:
            answer = self._try(operation, key, absent, parameters)
            self._without_checksums("refuses requests with checksums")
        return answer or {}

    def _without_checksums(self, why: str) -> None:
        log.info("no additional checksums from now on: %s %s", self._bucket.endpoint, why)
        self._connection.checksums = False

    def _try(
        self,
        operation: str,
        key: str,
        absent: Collection[str],
        parameters: Mapping[str, Any],
        optional: bool = False,
    ) -> Answer | None:
        """One request. None: the store may not know the optional parameters."""
        try:
            asked = {"Bucket": self._bucket.name, **self._extra_parameters.of(operation), **parameters}
            answer = self._connection.requests.ask(operation, asked)
            if "Body" in answer:
                answer["Body"] = answer["Body"].read()
        except FAILURES as error:
            if code_of(error) in absent:
                return {}
            if optional and may_not_know(error, operation):
                return None
            # The error's text may have a session token, so it must not be in the traceback.
            explained = explain(error, self._bucket, operation, key)
            raise type(explained)(f"{explained}{self._extra_parameters.hint(error, operation)}") from None
        self._extra_parameters.check(operation, answer, self._bucket.endpoint)
        return answer if self._md5_etags else {**answer, OPAQUE: True}

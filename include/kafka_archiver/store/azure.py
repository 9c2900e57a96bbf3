"""The store on Azure Blob Storage.

An upload is a set of blocks, which nobody sees before their list is committed, and an empty marker blob below
`.uploads/`, which lists it: Azure itself lists no uploads. Azure keeps the blocks of a blob until any list of it is
committed. So an upload is gone once another one of the same key was completed. An abort commits an empty list and
removes that blob at once, unless another upload of the key is pending: an attempt that slept behind its look at the
marker finds no blocks.

Azure compares the MD5 of every block, and of everything that is written at once, when it arrives. A blob of blocks has
no checksum of Azure's: it is compared by its ETag, which changes with every write, or by its bytes.
"""

import functools
import hashlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import BlobBlock, BlobClient, ContainerClient

from kafka_archiver.messages.errors import (
    ArchiverError,
    ColdObjectError,
    ConfigError,
    PermanentError,
    TransientError,
    kind_in_words,
)
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.store.azure_options import AzureOptions
from kafka_archiver.store.base import (
    MAX_PARTS,
    MIN_PART,
    Body,
    PendingUpload,
    Stat,
    StoredObject,
    UploadedPart,
    pieces,
    upload_gone,
)
from kafka_archiver.store.object_check import compare
from kafka_archiver.store.retry import Backoff
from kafka_archiver.values.checksum import crc32 as crc32_of

Result = TypeVar("Result")
_MARKERS = ".uploads/"
# In the marker of an upload whose blocks are about to go; that of a pending one is empty.
_ABORTED = b"aborted"
_NONE: Mapping[str, Any] = {}
_IF_NONE_MATCH: Mapping[str, Any] = {"match_condition": MatchConditions.IfMissing}
# Azure's codes: blocks that a list names are gone; the blob is not as a condition says.
_NO_BLOCKS = "InvalidBlockList", "InvalidBlockId", "InvalidBlobOrBlock"
_OTHER_VERSION = "ConditionNotMet", "BlobAlreadyExists", "BlobNotFound"
# Azure takes that much in one request; more would be sent in blocks.
_AT_ONCE = 5000 << 20


def open_azure(container: str, prefix: str, options: Mapping[str, str], backoff: Backoff) -> "AzureStore":
    """Open the store of `az://container/prefix`. Sends no request."""
    return AzureStore(container, prefix, AzureOptions.parse(options), backoff)


@functools.lru_cache(maxsize=8)
def _client(container: str, options: AzureOptions, _: int) -> ContainerClient:
    """Return a client that threads may share. The last argument is the process: its connections are its own."""
    return ContainerClient(
        options.account_url,
        container,
        credential=options.credential,
        connection_timeout=5,
        read_timeout=60,
        # `Backoff` retries instead.
        retry_total=0,
        max_single_put_size=_AT_ONCE,
        max_single_get_size=32 << 20,
    )


class AzureStore:
    """Objects below `az://container/prefix`."""

    def __init__(self, container: str, prefix: str, options: AzureOptions, backoff: Backoff) -> None:
        self.url = f"az://{container}/{prefix}".rstrip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        try:
            self._client = _client(container, options, os.getpid())
        except ValueError as error:
            raise ConfigError(f"the store's connection cannot be used ({kind_in_words(error)})") from None
        self._place, self._backoff = f"container {container} at {options.account_url}", backoff

    def __repr__(self) -> str:
        return f"AzureStore({self.url!r}, {self._place})"

    def get(self, key: str) -> bytes | None:
        version = self.version(key)
        return version and version.data

    def read(self, key: str, start: int, length: int) -> bytes | None:
        def attempt() -> bytes | None:
            return bytes(self._blob(key).download_blob(start, length, validate_content=length <= 4 << 20).readall())

        return self._ask(key, attempt, {"BlobNotFound": None, "InvalidRange": b""})

    def head(self, key: str) -> Stat | None:
        def attempt() -> Stat:
            blob = self._blob(key).get_blob_properties()
            return Stat(key, blob.size, _plain(blob.etag), blob.last_modified.astimezone(UTC))

        return self._ask(key, attempt, {"BlobNotFound": None})

    def put(self, key: str, data: bytes) -> str:
        return self._ask(key, lambda: self._write(key, data))

    def create(self, key: str, data: bytes) -> bool:
        return self._write_if(key, data, overwrite=False)

    def version(self, key: str) -> StoredObject | None:
        def attempt() -> StoredObject:
            answer = self._blob(key).download_blob()
            data, expected = bytes(answer.readall()), answer.properties.content_settings.content_md5
            if expected and hashlib.md5(data, usedforsecurity=False).digest() != bytes(expected):
                raise TransientError(f"{self.url}: the {len(data)} bytes read of {key} do not have its MD5")
            return StoredObject(data, _plain(answer.properties.etag))

        return self._ask(key, attempt, {"BlobNotFound": None})

    def replace(self, key: str, data: bytes, etag: str) -> bool:
        return self._write_if(key, data, overwrite=True, **_if_match(etag))

    def now(self) -> datetime:
        dates: list[str] = []

        def attempt() -> datetime:
            hook = lambda answer: dates.append(answer.http_response.headers["Date"])  # noqa: E731
            self._client.get_container_properties(raw_response_hook=hook)
            return parsedate_to_datetime(dates[-1]).astimezone(UTC)

        return self._ask("", attempt)

    def list(self, prefix: str) -> Iterator[Stat]:
        for blob in self._blobs(self._prefix + prefix):
            # Those of other uploads, if the store is the whole container.
            if not blob.name.startswith(_MARKERS):
                key = blob.name.removeprefix(self._prefix)
                yield Stat(key, blob.size, _plain(blob.etag), blob.last_modified.astimezone(UTC))

    def delete(self, key: str) -> None:
        self._ask(key, lambda: self._blob(key).delete_blob(), {"BlobNotFound": None})

    def delete_version(self, key: str, etag: str) -> bool:
        def attempt() -> bool:
            self._blob(key).delete_blob(**_if_match(etag))
            return True

        return self._ask(key, attempt, {"ConditionNotMet": False, "BlobNotFound": True}) or self.head(key) is None

    def start_upload(self, key: str) -> PendingUpload:
        upload = PendingUpload(key, uuid.uuid4().hex)
        self._ask(key, lambda: self._marker(key, upload.upload_id).upload_blob(b"", overwrite=True))
        return upload

    def upload_part(self, upload: PendingUpload, number: int, data: Body, crc32: int) -> UploadedPart:
        if not 1 <= number <= MAX_PARTS:
            raise PermanentError(f"{self.url}: {upload.key} has no part {number}: expected 1 to {MAX_PARTS:,}")
        read_crc32, size = 0, 0
        for piece in pieces(data):
            read_crc32, size = crc32_of(piece, read_crc32), size + len(piece)
        if read_crc32 != crc32:
            raise TransientError(
                f"{self.url}: part {number} of {upload.key} has changed since it was encoded: local disk or memory "
                "damaged it. The next attempt of the task writes the object again"
            )
        # Of one length, as Azure wants them. Two of one part differ if their bytes do.
        block = f"{upload.upload_id}-{number:05d}-{crc32:08x}"

        def attempt() -> None:
            if not isinstance(data, bytes):
                data.seek(0)
            self._blob(upload.key).stage_block(block, data, length=size, validate_content=True)

        self._require_marker(upload)
        self._ask(upload.key, attempt)
        return UploadedPart(block, crc32, size)

    def complete_upload(self, upload: PendingUpload) -> str:
        if any(part.size < MIN_PART for part in upload.parts[:-1]):
            raise PermanentError(
                f"{self.url}: {upload.key} cannot be completed: a part other than the last is smaller than 5 MiB"
            )
        blocks = [BlobBlock(part.etag) for part in upload.parts]

        # Before the look at the marker: who aborts the upload and then deletes the object changes the blob.
        before = self.head(upload.key)
        condition = _if_match(before.etag) if before else _IF_NONE_MATCH

        def attempt() -> str:
            return _plain(self._blob(upload.key).commit_block_list(blocks, **condition)["etag"])

        etag = None
        if self._is_pending(upload) and blocks:
            etag = self._ask(upload.key, attempt, dict.fromkeys((*_NO_BLOCKS, *_OTHER_VERSION)))
        if etag is None:
            # An earlier try may have completed the upload although its answer was lost, or another attempt has.
            difference = compare(self, upload.key, upload.size, upload.checksum)
            if not difference.same or difference.stat is None or not blocks:
                raise self._incomplete(upload)
            etag = difference.stat.etag
        self._remove_marker(upload.key, upload.upload_id)
        return etag

    def abort_upload(self, key: str, upload_id: str) -> None:
        marker = self._marker(key, upload_id)

        def attempt() -> bool:
            # Not removed at once, so that an abort that is stopped here is repeated.
            marker.upload_blob(_ABORTED, overwrite=True, match_condition=MatchConditions.IfPresent)
            return True

        if self._ask(key, attempt, dict.fromkeys(_OTHER_VERSION)):
            self._discard_blocks(key)
            self._remove_marker(key, upload_id)

    def list_uploads(self, prefix: str) -> Iterator[tuple[str, str, datetime]]:
        for blob in self._blobs(f"{_MARKERS}{self._prefix}{prefix}"):
            key, _, upload_id = blob.name.removeprefix(_MARKERS + self._prefix).rpartition("/")
            yield key, upload_id, blob.last_modified.astimezone(UTC)

    def _discard_blocks(self, key: str) -> None:
        """Make Azure forget the blocks of aborted uploads of a key. If another one is pending, its end does that."""
        if any(marker.size == 0 for marker in self._blobs(f"{_MARKERS}{self._prefix}{key}/")):
            return

        def attempt() -> bool:
            self._blob(key).commit_block_list([], **_IF_NONE_MATCH)
            return True

        if self._staged(key):
            self._ask(key, attempt, dict.fromkeys(_OTHER_VERSION))
        # Also that of an abort that was stopped; no object is empty.
        stat = self.head(key)
        if stat and stat.size == 0:
            self.delete_version(key, stat.etag)

    def _remove_marker(self, key: str, upload_id: str) -> None:
        self._ask(key, lambda: self._marker(key, upload_id).delete_blob(), {"BlobNotFound": None})

    def _staged(self, key: str) -> set[str]:
        """Return the ids of the blocks that are in no committed list."""

        def attempt() -> set[str]:
            return {block.id for block in self._blob(key).get_block_list("uncommitted")[1]}

        return self._ask(key, attempt, {"BlobNotFound": set()})

    def _incomplete(self, upload: PendingUpload) -> ArchiverError:
        """Return the error for an upload whose parts are not there."""
        if self._is_pending(upload) and any(block.startswith(upload.upload_id) for block in self._staged(upload.key)):
            return PermanentError(f"{self.url}: {upload.key} cannot be completed: its upload does not have these parts")
        return upload_gone(self.url, upload.key)

    def _is_pending(self, upload: PendingUpload) -> bool:
        marker = self._marker(upload.key, upload.upload_id)
        blob = self._ask(upload.key, marker.get_blob_properties, {"BlobNotFound": None})
        return blob is not None and blob.size == 0

    def _require_marker(self, upload: PendingUpload) -> None:
        if not self._is_pending(upload):
            raise upload_gone(self.url, upload.key)

    def _blob(self, key: str) -> BlobClient:
        return self._client.get_blob_client(self._prefix + key)

    def _marker(self, key: str, upload_id: str) -> BlobClient:
        return self._client.get_blob_client(f"{_MARKERS}{self._prefix}{key}/{upload_id}")

    def _blobs(self, prefix: str) -> Iterator[Any]:
        token: str | None = None
        while True:
            page, token = self._ask(prefix, functools.partial(self._page, prefix, token))
            yield from page
            if not token:
                return

    def _page(self, prefix: str, token: str | None) -> tuple[Sequence[Any], str | None]:
        pages: Any = self._client.list_blobs(name_starts_with=prefix).by_page(token)
        page = tuple(next(pages, ()))
        return page, pages.continuation_token

    def _write(self, key: str, data: bytes, overwrite: bool = True, **condition: Any) -> str:
        answer = self._blob(key).upload_blob(
            data, length=len(data), overwrite=overwrite, validate_content=True, **condition
        )
        return _plain(answer["etag"])

    def _write_if(self, key: str, data: bytes, overwrite: bool, **condition: Any) -> bool:
        """Write a blob if the condition holds; after a lost answer, the stored bytes decide."""
        tries = 0

        def attempt() -> str | None:
            nonlocal tries
            tries += 1
            try:
                return self._write(key, data, overwrite, **condition)
            except (ResourceExistsError, ResourceModifiedError, ResourceNotFoundError) as error:
                if _code_of(error) not in _OTHER_VERSION:
                    raise
                return None

        if self._ask(key, attempt) is not None:
            return True
        return tries > 1 and self.get(key) == data

    def _ask(
        self,
        key: str,
        attempt: Callable[[], Result],
        absent: Mapping[str, Any] = _NONE,
    ) -> Result:
        """Try until it works. `absent`: the results by the codes of errors that are answers."""

        def explained() -> Result:
            try:
                return attempt()
            except AzureError as error:
                code = _code_of(error)
                if code in absent:
                    answer: Result = absent[code]
                    return answer
                # Not the error itself: its text may have the address of a request with a signature.
                raise self._explained(error, code, key) from None

        return self._backoff.run(explained)

    def _explained(self, error: AzureError, code: str, key: str) -> ArchiverError:
        status = error.status_code if isinstance(error, HttpResponseError) else None
        why = f"{foreign(code or kind_in_words(error))}{f' ({status})' if status else ''}"
        if code == "ContainerNotFound":
            return PermanentError(f"there is no {self._place}: make it, or correct `store.url`")
        if isinstance(error, ClientAuthenticationError) or status in (401, 403):
            return PermanentError(
                f"{self._place} refuses {key or 'the request'}: {why}. Expected credentials in `store.connection` that "
                "may read, write, list and delete blobs there (Storage Blob Data Contributor)"
            )
        message = f"{self.url}: {key}: {why}"
        if code == "BlobArchived":
            return ColdObjectError(f"{message}: restore it to the hot or cool tier (`az storage blob set-tier`)")
        if status is None or status in (408, 429) or status >= 500:
            return TransientError(message)
        return PermanentError(message)


def _code_of(error: AzureError) -> str:
    """Return Azure's code of an error; empty if there was no answer."""
    code = getattr(error, "error_code", None)
    # The client makes an enumeration of the codes that it knows.
    return str(getattr(code, "value", code) or "")


def _if_match(etag: str) -> dict[str, Any]:
    return {"etag": f'"{etag}"', "match_condition": MatchConditions.IfNotModified}


def _plain(etag: Any) -> str:
    return str(etag).strip('"')

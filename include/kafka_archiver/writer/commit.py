"""What the driver does with the results of all chunks: make their objects visible, or throw them away."""

import re
from collections.abc import Iterable

from kafka_archiver.errors import IntegrityError
from kafka_archiver.manifest import ObjectEntry
from kafka_archiver.store.base import Store
from kafka_archiver.writer.result import ChunkResult, WrittenObject
from kafka_archiver.writer.threads import each
from kafka_archiver.writer.upload import abort_upload

_MULTIPART_MD5 = re.compile(r"[0-9a-f]{32}-[0-9]+")


def complete(results: Iterable[ChunkResult], store: Store, threads: int = 8) -> list[ObjectEntry]:
    """Complete all uploads; in any order, since readers trust the manifest alone. Completing twice does no harm.

    :raises IntegrityError: the store made something else of the parts than what was sent.
    """

    def make_visible(written: WrittenObject) -> ObjectEntry:
        upload = written.upload
        entry = written.entry(store.complete_upload(upload.key, upload.upload_id, upload.parts))
        # Under KMS, ETags have the same form but are no MD5s, which the parts' ETags show.
        plain = all(part.etag == part.md5 for part in upload.parts) and _MULTIPART_MD5.fullmatch(entry.etag)
        if plain and entry.etag != entry.checksum:
            raise IntegrityError(
                f"{entry.key}: the store says ETag {entry.etag}, the bytes sent have {entry.checksum}. "
                "Run the archive task again; if that happens again, something between here and the store changes data."
            )
        return entry

    return each(make_visible, (o for result in results for o in result.objects), threads)


def abort(results: Iterable[ChunkResult], store: Store, threads: int = 8) -> None:
    """Throw all uploads away. What could not be is logged, and found again by the store's list of uploads."""
    uploads = (o.upload for result in results for o in result.objects)
    each(lambda upload: abort_upload(store, upload.key, upload.upload_id), uploads, threads)

"""The archive's part of the bucket, read with nothing but an S3 client."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

from scripts.stack.s3 import S3

_HOUR = re.compile(r"date=(\d{4}-\d\d-\d\d)/hour=(\d\d)")


@dataclass(frozen=True, slots=True)
class Stored:
    etag: str
    size: int


class Lake:
    """The objects of one topic, and the ledger of one archive. Keys are those below the archive's prefix."""

    def __init__(self, s3: S3, url: str, topic: str, archive: str) -> None:
        parts = urlsplit(url)
        self.url = url.rstrip("/")
        self._bucket, self._prefix = parts.netloc, parts.path.strip("/") + "/"
        self._client = s3.client()
        self._data, self._ledger = f"{quote(topic, safe='')}/", f"_ledger/{quote(archive, safe='')}/"

    def objects(self) -> dict[str, Stored]:
        return self._list(self._data)

    def ledger(self) -> dict[str, Stored]:
        return self._list(self._ledger)

    def uploads(self) -> list[tuple[str, str]]:
        """Key and id of the uploads that nobody sees yet."""
        answer = self._client.list_multipart_uploads(Bucket=self._bucket, Prefix=self._prefix + self._data)
        return [(u["Key"].removeprefix(self._prefix), u["UploadId"]) for u in answer.get("Uploads", ())]

    def read(self, key: str) -> bytes:
        body: bytes = self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)["Body"].read()
        return body

    def download(self, directory: Path) -> None:
        """All objects, below the directory as they are below the archive's prefix."""

        def one(key: str) -> None:
            file = directory / key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.read(key))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(one, self.objects()))

    def clear(self) -> int:
        """Remove the objects, the uploads and the ledger. Returns how many objects there were."""
        objects = self._list(self._data)
        for key in [*objects, *self.ledger()]:
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + key)
        for key, upload in self.uploads():
            self._client.abort_multipart_upload(Bucket=self._bucket, Key=self._prefix + key, UploadId=upload)
        return len(objects)

    def _list(self, below: str) -> dict[str, Stored]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix + below)
        return {
            item["Key"].removeprefix(self._prefix): Stored(item["ETag"].strip('"'), item["Size"])
            for page in pages
            for item in page.get("Contents", ())
        }


def hour_of(key: str) -> str:
    """The hour in a key or path, as 2026-11-21 05."""
    found = _HOUR.search(key)
    return f"{found[1]} {found[2]}" if found else "?"


def hour_start(hour: str) -> int:
    """Where the hour that `hour_of` gave begins, in milliseconds since 1970."""
    return round(datetime.fromisoformat(f"{hour}:00:00+00:00").timestamp() * 1000)

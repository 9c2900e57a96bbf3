"""Object stores. Only this package imports boto3 and Azure's clients."""

import re
from collections.abc import Mapping

from kafka_archiver.messages.entry_points import imported
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.stores import STORES, examples
from kafka_archiver.store.base import PendingUpload, Stat, Store, UploadedPart
from kafka_archiver.store.retry import Backoff

# Bucket names that S3 servers accept; Amazon S3 accepts fewer.
_NAME = re.compile(r"[A-Za-z0-9._-]{1,255}")


def open_store(url: str, options: Mapping[str, str], backoff: Backoff | None = None) -> Store:
    """The store below `url`. Sends no request yet.

    :param url: `s3://bucket/prefix`, `az://container/prefix`, or another one of `model.stores`.
    :param options: those of the scheme: see :class:`~kafka_archiver.store.options.S3Options`; `memory` ignores them.
    :param backoff: how often to try a request; None: as often as a run does.
    :raises ConfigError: the URL or an option is wrong.
    """
    scheme, separator, place = url.partition("://")
    name, _, prefix = place.partition("/")
    if "@" in name:
        # The message must not repeat the URL: the text before the @ is a secret.
        raise ConfigError("store.url holds credentials; give them to the Airflow connection that store.aws names")
    if not separator or scheme not in STORES:
        raise ConfigError(f"store.url: expected {examples()}, found {url!r}")
    if not _NAME.fullmatch(name):
        raise ConfigError(f"store.url: expected the name of a bucket after {scheme}://, found {name!r} in {url!r}")
    prefix = prefix.strip("/")
    if prefix and any(segment in ("", ".", "..") for segment in prefix.split("/")):
        raise ConfigError(f"store.url: expected a prefix without empty, . or .. segments, found {url!r}")
    # Imported on first use: boto3 costs a third of a CPU second, which parsing DAG files should not pay.
    store: Store = imported(STORES.get(scheme).opener)(name, prefix, options, backoff or Backoff())
    return store


__all__ = ["PendingUpload", "Stat", "Store", "UploadedPart", "open_store"]

"""Opens the store of a URL."""

import re
from collections.abc import Callable, Mapping

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.store.base import Store
from kafka_archiver.store.options import S3Options
from kafka_archiver.store.retry import Backoff

# Bucket names that S3 servers accept; Amazon S3 accepts fewer.
_NAME = re.compile(r"[A-Za-z0-9._-]{1,255}")


def open_store(url: str, options: Mapping[str, str], backoff: Backoff | None = None) -> Store:
    """The store below `url`. Sends no request yet.

    :param url: `s3://bucket/prefix`; `memory://name/prefix`, for tests, is shared within the process.
    :param options: see :class:`~kafka_archiver.store.options.S3Options`; `memory` ignores them.
    :param backoff: how often to try a request; None: as often as a run does.
    :raises ConfigError: the URL or an option is wrong.
    """
    scheme, separator, place = url.partition("://")
    name, _, prefix = place.partition("/")
    if "@" in name:
        # The message must not repeat the URL: the text before the @ is a secret.
        raise ConfigError("store.url holds credentials; give them to the Airflow connection that store.aws names")
    if not separator or scheme not in _OPENERS:
        raise ConfigError(f"store.url: expected s3://bucket/prefix, found {url!r}")
    if not _NAME.fullmatch(name):
        raise ConfigError(f"store.url: expected the name of a bucket after {scheme}://, found {name!r} in {url!r}")
    prefix = prefix.strip("/")
    if prefix and any(segment in ("", ".", "..") for segment in prefix.split("/")):
        raise ConfigError(f"store.url: expected a prefix without empty, . or .. segments, found {url!r}")
    return _OPENERS[scheme](name, prefix, S3Options.parse(options), backoff or Backoff())


def _s3(bucket: str, prefix: str, options: S3Options, backoff: Backoff) -> Store:
    # Imported on first use: boto3 costs a third of a CPU second, which parsing DAG files should not pay.
    from kafka_archiver.store.s3 import S3Store

    return S3Store(bucket, prefix, options, backoff)


def _memory(name: str, prefix: str, _: S3Options, __: Backoff) -> Store:
    from kafka_archiver.store.memory import MemoryStore

    return MemoryStore(name, prefix)


_OPENERS: dict[str, Callable[[str, str, S3Options, Backoff], Store]] = {"s3": _s3, "memory": _memory}

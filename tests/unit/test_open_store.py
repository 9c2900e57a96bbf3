"""From a URL and options to a store, or to a sentence about what was expected."""

import pytest

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.store import open_store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.store.options import S3Options
from kafka_archiver.store.s3 import S3Store

pytestmark = pytest.mark.unit

KEYS = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}


@pytest.mark.parametrize("prefix", ["", "/", "/lake", "/lake/", "/a/b c/d"])
def test_a_url_opens_the_store_of_its_scheme_below_its_prefix(prefix: str) -> None:
    whole = f"bucket/{prefix.strip('/')}".rstrip("/")
    memory, s3 = open_store(f"memory://bucket{prefix}", {}), open_store(f"s3://bucket{prefix}", KEYS)
    assert isinstance(memory, MemoryStore)
    assert isinstance(s3, S3Store)
    assert (memory.url, s3.url) == (f"memory://{whole}", f"s3://{whole}")


def test_memory_stores_of_one_name_are_one_store_in_this_process() -> None:
    open_store("memory://shared/x", {}).put("k", b"1")
    assert open_store("memory://shared", {}).get("x/k") == b"1"
    assert open_store("memory://unshared", {}).get("x/k") is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("archive/lake", "expected s3://bucket/prefix or az://container/prefix, found 'archive/lake'"),
        ("s3a://archive/lake", "expected s3://bucket/prefix or az://container/prefix, found 's3a://archive/lake'"),
        ("gs://archive", "expected s3://bucket/prefix or az://container/prefix, found 'gs://archive'"),
        ("", "expected s3://bucket/prefix or az://container/prefix, found ''"),
        ("s3://", "expected the name of a bucket after s3://, found ''"),
        ("s3:///lake", "expected the name of a bucket after s3://, found ''"),
        ("s3://b:1/lake", "expected the name of a bucket after s3://, found 'b:1'"),
        ("s3://b/a//c", "expected a prefix without empty, . or .. segments"),
        ("s3://b/a/../c", "expected a prefix without empty, . or .. segments"),
        ("memory://", "expected the name of a bucket after memory://"),
    ],
)
def test_a_wrong_url_is_a_config_error_that_says_what_was_expected(url: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url, {})
    assert f"store.url: {expected}" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"endpoint": "http://x"}, "unknown store option endpoint; expected any of endpoint_url, region_name"),
        ({"aws_access_key_id": "a"}, "expected both or neither"),
        ({"aws_session_token": "t"}, "aws_session_token: expected aws_access_key_id with it"),
        ({"external_id": "e"}, "external_id: expected role_arn with it"),
        ({"addressing_style": "dns"}, "addressing_style: expected auto, path, virtual, found 'dns'"),
        ({"endpoint_url": "minio:9000"}, "endpoint_url: expected http://host:port or https://host:port, found 'min"),
    ],
)
def test_a_wrong_option_is_a_config_error_that_says_what_was_expected(options: dict[str, str], expected: str) -> None:
    for url in ("s3://b", "memory://b"):
        with pytest.raises(ConfigError) as caught:
            open_store(url, options)
        assert expected in str(caught.value)


def test_an_empty_option_is_one_that_was_not_given() -> None:
    assert S3Options.parse(dict.fromkeys(S3Options.__slots__, "")) == S3Options()

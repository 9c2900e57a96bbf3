"""A faulty S3 server, and a store on it that waits for nothing."""

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace

import pytest

from kafka_archiver.store import memory
from kafka_archiver.store.options import S3Options
from kafka_archiver.store.retry import Backoff
from kafka_archiver.store.s3 import S3Store
from kafka_archiver.store.s3_client import Timeouts
from tests.support.extensions import Install, add_entry_points, forget
from tests.support.faulty_s3 import BUCKET, FaultyS3

OpenFaulty = Callable[..., S3Store]
ACCESS_KEY, SECRET_KEY, TOKEN = "AKIDEXAMPLE", "s3cr3t-key-of-nobody", "t0ken-of-nobody"
TRIES = 4


@pytest.fixture(scope="module")
def small_parts() -> Iterator[None]:
    """Parts of a few bytes, so that small records fill many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "MIN_PART", 1)
        yield


@pytest.fixture(scope="session")
def _server() -> Iterator[FaultyS3]:
    with FaultyS3() as server:
        yield server


@pytest.fixture
def server(_server: FaultyS3) -> FaultyS3:
    """The same address for all tests, so that they share a client: making one is slow."""
    _server.reset()
    return _server


@pytest.fixture
def waits() -> list[float]:
    """The waits between tries, in seconds, instead of waiting."""
    return []


@pytest.fixture
def connect(server: FaultyS3, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> OpenFaulty:
    """Opens stores on the server, or elsewhere with another `endpoint_url`; `read` is the read timeout in seconds."""
    # Each wait is the longest that may be.
    monkeypatch.setattr("tenacity.wait.random", SimpleNamespace(uniform=lambda _, high: high))

    def connect(read: float = 30, **options: str) -> S3Store:
        credentials = {
            "endpoint_url": server.url,
            "region_name": "us-east-1",
            "aws_access_key_id": ACCESS_KEY,
            "aws_secret_access_key": SECRET_KEY,
            "aws_session_token": TOKEN,
            **options,
        }
        backoff = Backoff(tries=TRIES, sleep=waits.append)
        return S3Store(BUCKET, "", S3Options.parse(credentials), backoff, Timeouts(connect=5, read=read))

    return connect


@pytest.fixture
def store(connect: OpenFaulty) -> S3Store:
    return connect()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs entry points for one test."""
    yield partial(add_entry_points, monkeypatch)
    forget()

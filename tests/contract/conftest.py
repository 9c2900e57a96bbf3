"""The stores every contract is tested on: the twin in memory, with every kind of ETags and checksums, the real S3
server, and Microsoft's emulator of Azure's.
"""

import uuid
from collections.abc import Callable

import pytest

from kafka_archiver.store import Store, open_store
from kafka_archiver.store.memory import MemoryStore

OpenStore = Callable[[str], Store]


STORES = ("memory", "memory, foreign ETags", "memory, no checksums", "memory, neither", "s3", "az")
# What is true of the protocol is true of its users: they are tested on the stores that they can tell apart.
BY_MODULE = {
    "test_store": STORES,
    "test_ledger": ("memory", "s3", "az"),
    "test_adopted": ("memory", "s3"),
    "test_claims": ("memory", "s3"),
    "test_clean_up": ("memory", "s3"),
    "test_encrypted": ("memory", "s3"),
}
# integration/test_audit.py audits on a real server.
OF_OTHERS = ("memory", "memory, neither")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = any(mark.args[0] == "open_below" for mark in metafunc.definition.iter_markers("parametrize"))
    if "open_below" in metafunc.fixturenames and not chosen:
        stores = BY_MODULE.get(metafunc.module.__name__.rpartition(".")[2], OF_OTHERS)
        metafunc.parametrize("open_below", stores, indirect=True)


@pytest.fixture
def open_below(request: pytest.FixtureRequest) -> OpenStore:
    """Opens stores whose URLs share a place of this test's own: `open_below("x")` is below `open_below("")`."""
    test = uuid.uuid4().hex
    if request.param.startswith("memory"):
        foreign = request.param.endswith(("foreign ETags", "neither"))
        MemoryStore(test, foreign_etags=foreign, checksums=not request.param.endswith(("no checksums", "neither")))
        return lambda prefix: open_store(f"memory://{test}/{prefix}", {})
    if request.param == "az":
        emulator = request.getfixturevalue("azurite")
        return lambda prefix: open_store(f"az://{emulator.container}/{test}/{prefix}", emulator.options())
    server = request.getfixturevalue("s3")
    return lambda prefix: open_store(f"s3://{server.bucket}/{test}/{prefix}", server.options())


@pytest.fixture
def store(open_below: OpenStore) -> Store:
    """An empty store."""
    return open_below("")

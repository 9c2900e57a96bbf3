"""The master key: wrap and open a data key, and open one that the ledger has. Nothing is written."""

from collections.abc import Iterator
from datetime import UTC, datetime

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.state.doctor.check import Finding, ok, problem

NAME = "encryption"


def check_encryption(ledger: Ledger) -> Iterator[Finding]:
    """Check that new plans get data keys, and that those before them can be opened.

    :raises ArchiverError: the master key is missing or wrong, or KMS refuses it.
    """
    keyring = ledger.keyring
    if keyring is None:
        return
    key, document = keyring.new(ledger.archive, datetime.now(UTC))
    if keyring.open(document) != key:
        yield problem(NAME, "the master key opens a data key to another one", "nobody could read the objects")
        return
    existing = ledger.data_keys()
    if existing:
        ledger.open_key(existing[-1])
    yield ok(NAME, f"master key {document.wrapped.master} wraps and opens data keys; the ledger has {len(existing):,}")

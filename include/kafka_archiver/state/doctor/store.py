"""The store: try each kind of request once, with objects that are removed again."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.model.object_keys import probe_prefix
from kafka_archiver.state.doctor.check import Finding, ok, problem, tried, warning
from kafka_archiver.store import PendingUpload, Store
from kafka_archiver.store.base import MIN_PART
from kafka_archiver.store.object_check import Comparison, compare
from kafka_archiver.values.checksum import crc32

# S3 refuses signed requests if the clocks differ by 15 minutes.
SKEW_NOTED, SKEW_TOO_MUCH = timedelta(seconds=30), timedelta(minutes=5)
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


def check_store(store: Store, archive: str) -> Iterator[Finding]:
    """Check everything about the store. If it cannot be listed, only that."""
    prefix = probe_prefix(archive)
    try:
        list(store.list(prefix))
    except ArchiverError as error:
        yield problem("store", str(error), "the other checks of the store are skipped")
        return
    yield ok("store", f"{store.url} can be listed")
    key = f"{prefix}{uuid.uuid4()}"
    try:
        yield from tried("create-only", lambda: _create_only(store, f"{key}-created"))
        yield from tried("put, get, head, list, delete", lambda: _objects(store, f"{key}-put"))
        yield from tried("multipart", lambda: _multipart(store, f"{key}-parts"))
    finally:
        # Not `yield from`: a generator that is closed early must not yield here.
        left = list(tried("probe", lambda: _remove(store, key)))
    yield from left


def _create_only(store: Store, key: str) -> Iterator[Finding]:
    name, first = "create-only", b"first"
    if not store.create(key, first):
        yield problem(name, f"{key} cannot be created: it exists already", "two doctors run at once; try again")
        return
    if store.create(key, b"second") or store.get(key) != first:
        yield problem(
            name,
            "the store ignores `If-None-Match: *`: an existing object was overwritten",
            "two planners at once could freeze different plans of one interval, and commit both",
            "a store, or a release of it, that has conditional writes",
            "until then never run one archive from two Airflows",
        )
    else:
        yield ok(name, "the second write of a key is refused")
    yield from tried("replace-only", lambda: _replace_only(store, key))


def _replace_only(store: Store, key: str) -> Iterator[Finding]:
    name, newer = "replace-only", b"what somebody wrote since"
    known = store.version(key)
    if known is None:
        yield problem(name, f"{key} was just written, but is missing", "reads of this store cannot be trusted")
    elif not store.replace(key, newer, known.etag):
        yield problem(
            name,
            "the store refuses to replace an object by the ETag that it gave for it (`If-Match`)",
            "no run can update intents, proofs and the progress, so no run can finish",
            "a store, or a release of it, that has conditional writes",
        )
    elif store.replace(key, b"by who has not read that", known.etag) or store.get(key) != newer:
        yield problem(
            name,
            "the store ignores `If-Match`: a writer that had read an older version replaced an object",
            "parallel runs overwrite each other's proofs and progress: hours would be proved without their records",
            "a store, or a release of it, that has conditional writes",
            "until then never run one archive from two Airflows, and clear no task of a run while another is at work",
        )
    else:
        yield ok(name, "an object is replaced only if it has not changed since it was read")


def _objects(store: Store, key: str) -> Iterator[Finding]:
    name = "put, get, head, list, delete"
    data = uuid.uuid4().bytes
    before = datetime.now(UTC)
    store.put(key, data)
    after = datetime.now(UTC)
    stat = store.head(key)
    wrong = [
        what
        for what, right in (
            ("get gives other bytes than put wrote", store.get(key) == data),
            ("head does not see what put wrote", stat is not None and stat.size == len(data)),
            ("list does not show what put wrote", any(s.key == key for s in store.list(key))),
        )
        if not right
    ]
    store.delete(key)
    if store.head(key) is not None:
        wrong.append("delete does not remove the object")
    if wrong:
        yield problem(name, "; ".join(wrong), "the archiver needs a store with read-after-write consistency")
    else:
        yield ok(name, "each works, with immediate effect")
    if stat is not None:
        yield check_clock(stat.modified, before, after)


def check_clock(store_time: datetime, before: datetime, after: datetime) -> Finding:
    """Compare the store's time of an object, in whole seconds, with our clock before and after the write."""
    ahead, behind = store_time - after, before - store_time - timedelta(seconds=1)
    skew = max(ahead, behind, timedelta(0))
    observed = f"the store's clock is {skew.total_seconds():.0f} s {'ahead of' if ahead > behind else 'behind'} ours"
    if skew < SKEW_NOTED:
        return ok("clocks", "the store's clock agrees with ours")
    means = "requests are refused at 15 minutes, and a run could plan an interval that is not over"
    choice = "synchronise this machine and the store with NTP"
    return (problem if skew > SKEW_TOO_MUCH else warning)("clocks", observed, means, choice)


def _multipart(store: Store, key: str) -> Iterator[Finding]:
    name = "multipart"
    begun = store.start_upload(key)
    sent = (bytes(MIN_PART), b"the end")
    parts = (store.upload_part(begun, number, data, crc32(data)) for number, data in enumerate(sent, start=1))
    upload = begun._replace(parts=tuple(parts))
    listed = any(listed_id == upload.upload_id for _, listed_id, _ in store.list_uploads(key))
    unseen = store.head(key) is None
    etag = store.complete_upload(upload)
    whole = compare(store, key, upload.size, upload.checksum, upload.md5_etag)
    aborted_id = store.start_upload(key).upload_id
    store.abort_upload(key, aborted_id)
    aborted = all(listed_id != aborted_id for _, listed_id, _ in store.list_uploads(key))
    wrong = [
        what
        for what, right in (
            ("an upload is visible before it is completed", unseen),
            (f"the completed object is {whole}, not what was sent", whole.same),
            ("an aborted upload is still listed", aborted),
        )
        if not right
    ]
    if wrong:
        yield problem(name, "; ".join(wrong), "objects could be incomplete, or stay for ever")
    elif not listed:
        yield warning(
            name,
            "the list of unfinished uploads does not show an unfinished upload",
            "uploads of killed jobs cannot be found and removed",
            "a lifecycle rule that aborts incomplete uploads after a day or two",
        )
    else:
        yield ok(name, f"started, sent, completed, aborted, listed; {_kind(upload, whole, etag)}")


def _kind(upload: PendingUpload, whole: Comparison, etag: str) -> str:
    """Return in words how the store's objects are compared with what was sent."""
    if upload.checked and whole.by == "checksum":
        return "the store checks and keeps the CRC-32 of every part and object"
    parts = "checks the CRC-32" if upload.checked else "checks the MD5"
    if etag == upload.md5_etag:
        return f"the store {parts} of every part; objects are compared by their ETags"
    return f"the store {parts} of every part; its ETags are no MD5s, so objects of killed jobs are compared by reading"


def _remove(store: Store, key: str) -> Iterator[Finding]:
    for listed_key, upload_id, _ in list(store.list_uploads(key)):
        store.abort_upload(listed_key, upload_id)
    for stat in list(store.list(key)):
        store.delete(stat.key)
    yield from ()

"""The store: each kind of request is tried once, with objects of our own that are removed again."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from kafka_archiver.checksum import crc32
from kafka_archiver.errors import ArchiverError
from kafka_archiver.keys import probe_prefix
from kafka_archiver.steps.doctor.check import Check, ok, problem, tried, warning
from kafka_archiver.store import PendingUpload, Store
from kafka_archiver.store.base import MIN_PART
from kafka_archiver.store.compare import Comparison, compare

# Signed requests of clocks that differ by a quarter of an hour are refused.
SKEW_NOTED, SKEW_TOO_MUCH = timedelta(seconds=30), timedelta(minutes=5)


def check_store(store: Store, archive: str) -> Iterator[Check]:
    """Everything about the store; where it cannot even be listed, that alone."""
    prefix = probe_prefix(archive)
    try:
        list(store.list(prefix))
    except ArchiverError as error:
        yield problem("store", str(error), "nothing else about the store could be tried")
        return
    yield ok("store", f"{store.url} can be listed")
    key = f"{prefix}{uuid.uuid4()}"
    try:
        yield from tried("create-only", lambda: _create_only(store, f"{key}-created"))
        yield from tried("put, get, head, list, delete", lambda: _objects(store, f"{key}-put"))
        yield from tried("multipart", lambda: _multipart(store, f"{key}-parts"))
    finally:
        # A generator that nobody reads to its end is closed, and then may yield nothing more.
        left = list(tried("probe", lambda: _remove(store, key)))
    yield from left


def _create_only(store: Store, key: str) -> Iterator[Check]:
    name, first = "create-only", b"first"
    if not store.create(key, first):
        yield problem(name, f"{key} cannot be created, for it is there already", "two doctors at once; ask again")
        return
    if store.create(key, b"second") or store.get(key) != first:
        yield problem(
            name,
            "the store ignores `If-None-Match: *`: an object that was there was written again",
            "two planners at once could freeze different plans of one interval, and commit both",
            "a store, or a release of it, that has conditional writes",
            "until then never run one archive from two Airflows",
        )
    else:
        yield ok(name, "the second write of a key is refused")
    yield from tried("replace-only", lambda: _replace_only(store, key))


def _replace_only(store: Store, key: str) -> Iterator[Check]:
    name, newer = "replace-only", b"what somebody wrote since"
    known = store.version(key)
    if known is None:
        yield problem(name, f"{key} was just written, and is not there", "nothing that is read can be relied on")
    elif not store.replace(key, newer, known.etag):
        yield problem(
            name,
            "the store refuses to replace an object by the ETag that it gave for it (`If-Match`)",
            "no run can write on what is archived, so none comes to its end",
            "a store, or a release of it, that has conditional writes",
        )
    elif store.replace(key, b"by who has not read that", known.etag) or store.get(key) != newer:
        yield problem(
            name,
            "the store ignores `If-Match`: an object was replaced by somebody who had read an older version of it",
            "what one run has written on what is archived, another one that works beside it takes back: hours that "
            "have records would be proved without them",
            "a store, or a release of it, that has conditional writes",
            "until then never run one archive from two Airflows, and clear no task of a run while another is at work",
        )
    else:
        yield ok(name, "an object is replaced only by who has read it as it is")


def _objects(store: Store, key: str) -> Iterator[Check]:
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
        wrong.append("delete leaves the object there")
    if wrong:
        yield problem(name, "; ".join(wrong), "the archiver needs a store that shows at once what was written")
    else:
        yield ok(name, "each does what it should, at once")
    if stat is not None:
        yield check_clock(stat.modified, before, after)


def check_clock(theirs: datetime, before: datetime, after: datetime) -> Check:
    """The store's time of an object that was written between two moments of ours. It counts in whole seconds."""
    ahead, behind = theirs - after, before - theirs - timedelta(seconds=1)
    skew = max(ahead, behind, timedelta(0))
    found = f"the store's clock is {skew.total_seconds():.0f} s {'ahead of' if ahead > behind else 'behind'} ours"
    if skew < SKEW_NOTED:
        return ok("clocks", "the store's clock agrees with ours")
    means = "requests are refused at 15 minutes, and a run could take an interval for over that is not"
    choice = "synchronise this machine and the store with NTP"
    return (problem if skew > SKEW_TOO_MUCH else warning)("clocks", found, means, choice)


def _multipart(store: Store, key: str) -> Iterator[Check]:
    name = "multipart"
    begun = store.start_upload(key)
    sent = (bytes(MIN_PART), b"the end")
    parts = (store.upload_part(begun, number, data, crc32(data)) for number, data in enumerate(sent, start=1))
    upload = begun._replace(parts=tuple(parts))
    listed = any(found == upload.upload_id for _, found, _ in store.list_uploads(key))
    unseen = store.head(key) is None
    etag = store.complete_upload(upload)
    whole = compare(store, key, upload.size, upload.checksum, upload.md5_etag)
    other = store.start_upload(key).upload_id
    store.abort_upload(key, other)
    aborted = all(found != other for _, found, _ in store.list_uploads(key))
    wrong = [
        what
        for what, right in (
            ("an upload is visible before it is completed", unseen),
            (f"the completed object is {whole}, not what was sent", whole.same),
            ("aborting an upload leaves it there", aborted),
        )
        if not right
    ]
    if wrong:
        yield problem(name, "; ".join(wrong), "objects could be half written, or never go away")
    elif not listed:
        yield warning(
            name,
            "the list of unfinished uploads does not show one",
            "what killed jobs had sent cannot be found again",
            "a lifecycle rule that aborts incomplete uploads after a day or two",
        )
    else:
        yield ok(name, f"started, sent, completed, aborted, listed; {_kind(upload, whole, etag)}")


def _kind(upload: PendingUpload, whole: Comparison, etag: str) -> str:
    """How the store's objects are compared with what was sent."""
    if upload.checked and whole.by == "checksum":
        return "the store checks the CRC-32 of every part and object, and keeps it"
    parts = "checks the CRC-32" if upload.checked else "checks the MD5"
    if etag == upload.md5_etag:
        return f"the store {parts} of every part; objects are compared by their ETags"
    return f"the store {parts} of every part; its ETags are no MD5s, so what a killed job left is read to be compared"


def _remove(store: Store, key: str) -> Iterator[Check]:
    for found, upload_id, _ in list(store.list_uploads(key)):
        store.abort_upload(found, upload_id)
    for stat in list(store.list(key)):
        store.delete(stat.key)
    yield from ()

"""The store: each kind of request is tried once, with objects of our own that are removed again."""

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from kafka_archiver.errors import ArchiverError
from kafka_archiver.keys import probe_prefix
from kafka_archiver.steps.doctor.check import Check, ok, problem, tried, warning
from kafka_archiver.store import PendingUpload, Store
from kafka_archiver.store.base import MIN_PART

# Signed requests of clocks that differ by a quarter of an hour are refused.
SKEW_NOTED, SKEW_TOO_MUCH = timedelta(seconds=30), timedelta(minutes=5)


def check_store(store: Store, archive: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Iterator[Check]:
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
        yield from tried("put, get, head, list, delete", lambda: _objects(store, f"{key}-put", now))
        yield from tried("multipart", lambda: _multipart(store, f"{key}-parts"))
    finally:
        # A generator that nobody reads to its end is closed, and then may yield nothing more.
        left = list(tried("probe", lambda: _remove(store, key)))
    yield from left


def _create_only(store: Store, key: str) -> Iterator[Check]:
    name, first = "create-only", b"first"
    if not store.create(key, first):
        yield problem(name, f"{key} cannot be created, for it is there already", "two doctors at once; ask again")
    elif store.create(key, b"second") or store.get(key) != first:
        yield problem(
            name,
            "the store ignores `If-None-Match: *`: an object that was there was written again",
            "two planners at once could freeze different plans of one interval, and commit both",
            "a store, or a release of it, that has conditional writes",
            "until then never run one archive from two Airflows",
        )
    else:
        yield ok(name, "the second write of a key is refused")


def _objects(store: Store, key: str, now: Callable[[], datetime]) -> Iterator[Check]:
    name = "put, get, head, list, delete"
    data = uuid.uuid4().bytes
    before = now()
    store.put(key, data)
    after = now()
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
    upload_id = store.start_upload(key)
    sent = (bytes(MIN_PART), b"the end")
    parts = tuple(store.upload_part(key, upload_id, number, data) for number, data in enumerate(sent, start=1))
    listed = any(found == upload_id for _, found, _ in store.list_uploads(key))
    unseen = store.head(key) is None
    etag = store.complete_upload(key, upload_id, parts)
    stat = store.head(key)
    other = store.start_upload(key)
    store.abort_upload(key, other)
    aborted = all(found != other for _, found, _ in store.list_uploads(key))
    wrong = [
        what
        for what, right in (
            ("an upload is visible before it is completed", unseen),
            ("the completed object is not what was sent", stat is not None and stat.size == sum(map(len, sent))),
            ("aborting an upload leaves it there", aborted),
        )
        if not right
    ]
    expected = PendingUpload(key, upload_id, parts).checksum
    plain = all(part.etag == part.md5 for part in parts)
    if wrong:
        yield problem(name, "; ".join(wrong), "objects could be half written, or never go away")
    elif plain and etag != expected:
        found = f"the completed object has ETag {etag}, its parts' MD5s give {expected}"
        yield problem(name, found, "every run would take its objects for damaged")
    elif not listed:
        yield warning(
            name,
            "the list of unfinished uploads does not show one",
            "what killed jobs had sent cannot be found again",
            "a lifecycle rule that aborts incomplete uploads after a day or two",
        )
    else:
        etags = "the ETag is as expected" if plain else "ETags are no MD5s (encryption by KMS)"
        yield ok(name, f"started, sent, completed, aborted, listed; {etags}")


def _remove(store: Store, key: str) -> Iterator[Check]:
    for found, upload_id, _ in list(store.list_uploads(key)):
        store.abort_upload(found, upload_id)
    for stat in list(store.list(key)):
        store.delete(stat.key)
    yield from ()

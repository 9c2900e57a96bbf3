"""Audit: check the archive against its ledger, and the ledger itself. Asks only the store and, on request, the brokers.

Writes nothing except, on request, its report.
"""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from kafka_archiver.audit.inspection.ask_brokers import ask_brokers
from kafka_archiver.audit.inspection.deep import WRONG, Reading
from kafka_archiver.audit.inspection.look import Comparison, compare
from kafka_archiver.audit.inspection.reading import Tell
from kafka_archiver.audit.object_findings import REWRITTEN
from kafka_archiver.audit.report import Report, verdict, warning
from kafka_archiver.config import Archive
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import DocumentError
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.object_keys import audit_document, ledger_prefix
from kafka_archiver.store import Store

if TYPE_CHECKING:
    from kafka_archiver.encryption import Keyring

log = logging.getLogger(__name__)
# Looks at most, until the ledger does not change during a look.
LOOKS = 3


def audit(
    archive: Archive,
    store: Store,
    moment: datetime,
    deep: bool = False,
    cluster: Cluster | None = None,
    tell: Tell = log.info,
    keyring: "Keyring | None" = None,
) -> Report:
    """Compare an archive's objects, documents and derived documents with each other.

    Without `deep`, it reads the objects that the last report calls wrong: a store may return damaged bytes with the
    right size and ETag, so only reading shows whether they are mended.

    :param deep: also read every object.
    :param cluster: also compare with these brokers.
    :param tell: receives the progress, one line at a time.
    :param keyring: the master keys. Without them, of encrypted objects only the bytes are compared.
    :raises ArchiverError: the store or the brokers do not answer.
    """
    settled = _settled_comparison(archive, store, tell)
    findings, counts = settled.findings, settled.counts
    wrong = _called_wrong(archive, store)
    only = None if deep else wrong
    if deep or only:
        reading = Reading(store, Ledger(store, archive.archive, keyring), counts.objects, tell)
        skip = {f.subject for f in findings if f.kind in ("object-missing", "object-changed")}
        read = list(reading.read(range(1, settled.last + 1), skip, only))
        if settled.adoption:
            read += reading.read_adopted(settled.adoption, skip, only)
        read += reading.cold(wrong)
        findings = _joined(findings, read, reading.same)
        counts = counts.model_copy(update={"read": reading.count})
    if cluster:
        findings = [*findings, *ask_brokers(archive, cluster, store)]
    ordered = tuple(sorted(findings, key=lambda f: (f.severity, f.kind, f.subject)))
    return Report(
        archive=archive.archive,
        store=store.url,
        audited_at=moment,
        deep=deep,
        live=cluster is not None,
        verdict=verdict(ordered),
        counts=counts,
        unfinished=tuple(run.name for run in settled.unsettled),
        findings=ordered,
    )


def publish(store: Store, report: Report) -> str:
    """Write the report to the ledger, in place of an earlier one. Returns its key.

    An audit that slept does not overwrite the report of a later one.
    """
    key, data = audit_document(report.archive), report.to_json()
    while (before := store.version(key)) is None or _is_earlier(before.data, report, key):
        if store.create(key, data) if before is None else store.replace(key, data, before.etag):
            break
    return key


def _called_wrong(archive: Archive, store: Store) -> set[str]:
    """The keys of the objects that were wrong when the last published audit read them."""
    key = audit_document(archive.archive)
    before = store.version(key)
    try:
        return {f.subject for f in Report.from_json(before.data, key).findings if f.kind == WRONG} if before else set()
    except DocumentError:
        return set()


def _is_earlier(data: bytes, report: Report, key: str) -> bool:
    try:
        return Report.from_json(data, key).audited_at <= report.audited_at
    except DocumentError:
        return True


def _settled_comparison(archive: Archive, store: Store, tell: Tell) -> Comparison:
    """A look. If it finds damage and the ledger changed meanwhile, look again: a run at work looks like damage."""
    for again in range(LOOKS, 0, -1):
        before = _fingerprint(archive, store)
        result = compare(store, archive.archive, archive.source.topics or (), tell)
        if verdict(tuple(result.findings)) == "clean" or again == 1 or _fingerprint(archive, store) == before:
            break
        tell(f"{archive.archive}: a run was at work meanwhile; looking again")
    return result


def _fingerprint(archive: Archive, store: Store) -> int:
    """A hash of the ledger's listing, in any order; the ledger may have half a million documents."""
    return sum(hash((stat.key, stat.etag)) for stat in store.list(ledger_prefix(archive.archive)))


def _joined(findings: list[Finding], read: list[Finding], same: set[str]) -> list[Finding]:
    """The findings of a look and of reading. Of a rewritten object with wrong bytes, only that."""
    etags = {f.subject: f.observed for f in findings if f.kind == REWRITTEN}
    wrong = {f.subject for f in read if f.kind == WRONG}
    kept = [_if_same(f, same) for f in findings if f.kind != REWRITTEN or f.subject not in wrong]
    return kept + [_with_etag(f, etags) for f in read]


def _if_same(finding: Finding, same: set[str]) -> Finding:
    """A rewritten object with the same bytes is not damage; after a copy of the store, all objects are such."""
    if finding.kind != REWRITTEN or finding.subject not in same:
        return finding
    advice = "Nothing needs to be done: its bytes are those that were written"
    return warning(finding.kind, finding.subject, finding.observed, finding.expected, advice)


def _with_etag(finding: Finding, etags: Mapping[str, str]) -> Finding:
    """The finding with the fact that the object was written again, if it was."""
    if finding.kind != WRONG or finding.subject not in etags:
        return finding
    return finding.model_copy(update={"observed": f"{finding.observed}; another ETag: {etags[finding.subject]}"})

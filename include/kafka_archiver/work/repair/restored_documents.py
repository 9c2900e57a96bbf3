"""Restore missing and damaged documents of a run from its other documents."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ArchiverError, DocumentError
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.object_keys import split_line_document, split_run_document, split_schema_document
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.repaired import without_lost
from kafka_archiver.model.replayed import manifest_of
from kafka_archiver.model.schemas import SchemaDocument
from kafka_archiver.store.base import Store

if TYPE_CHECKING:
    # Not at runtime: it loads the HTTP client.
    from kafka_archiver.records.decode.schema_registry import Registry

OpenRegistry: TypeAlias = "Callable[[], Registry] | None"
Item = TypeVar("Item")


def restore_document(ledger: Ledger, key: str, registry: OpenRegistry = None) -> None:
    """Write a document as the other documents or the registry give it; a document that is right already stays."""
    if (data := DocumentSources(ledger, registry).give(key)) is not None:
        _write_document(ledger.store, key, data)


def _write_document(store: Store, key: str, data: bytes) -> None:
    # Another process may write the missing document, too.
    if not store.create(key, data) and (version := store.version(key)):
        store.replace(key, data, version.etag)


@dataclass(frozen=True)
class DocumentSources:
    """Rebuilds documents from other documents: the plan in the line and its copy, checked by the commit's digests.
    Schemas come from the registry, checked by their fingerprints.

    The places of the line and the copies are read once, when the first plan is needed.
    """

    ledger: Ledger
    registry: OpenRegistry = None

    def give(self, key: str) -> bytes | None:
        """Return a document from the other documents; None if they do not have it, or the stored one is right."""
        number, place = split_line_document(self.ledger.archive, key), split_run_document(self.ledger.archive, key)
        document: Plan | Manifest | SchemaDocument | None = None
        try:
            if number is not None:
                document = self._as_committed(self._copies.get(number))
            elif place and place[1] == "plan":
                document = self._as_committed(self._line.get(place[0]))
            elif place and place[1] == "manifest":
                document = self._manifest(place[0])
            elif fingerprint := split_schema_document(self.ledger.archive, key):
                document = self._schema(fingerprint)
        except DocumentError:
            # A second document is damaged.
            return None
        data = document.to_bytes() if document else None
        return None if data == self.ledger.store.get(key) else data

    def _schema(self, fingerprint: str) -> SchemaDocument | None:
        writers = (w for plan in self._line.values() for of_topic in plan.schemas for w in of_topic.writers)
        ids = {w.id for w in writers if w.fingerprint == fingerprint and w.id is not None}
        # A registry that does not answer must not keep the rest from being repaired.
        with suppress(ArchiverError):
            for schema in map(self.registry().schema, sorted(ids)) if self.registry and ids else ():
                if schema and schema.fingerprint == fingerprint:
                    return SchemaDocument.of(self.ledger.archive, schema)
        return None

    def _as_committed(self, plan: Plan | None) -> Plan | None:
        commit = self.ledger.commit(plan.run) if plan else None
        return None if plan and commit and commit.plan_digest != plan.digest else plan

    def _manifest(self, run: str) -> Manifest | None:
        commit = self.ledger.commit(run)
        digest = commit.manifest_digest if commit else None
        return next((m for m in self._may_have_been(run) if m.digest == digest), None)

    def _may_have_been(self, run: str) -> Iterator[Manifest]:
        plan = self.ledger.plan(run) or self._line.get(run)
        if plan is None:
            return
        if plan.origin == "repair" and plan.supersedes:
            before = self._manifest(plan.supersedes) or self.ledger.manifest(plan.supersedes)
            if before:
                yield without_lost(plan, before)
        elif (intent := self.ledger.intent(run).document) and intent.done and not plan.letters:
            yield intent.manifest(plan)
        elif intent and intent.done:
            before = self._manifest(plan.supersedes or "") or self.ledger.manifest(plan.supersedes or "")
            if before:
                yield manifest_of(plan, before, intent)

    @cached_property
    def _line(self) -> dict[str, Plan]:
        """The plans of the line that can be read, by run."""
        return {plan.run: plan for plan in _readable_plans(self.ledger.planned, self.ledger.numbers())}

    @cached_property
    def _copies(self) -> dict[int, Plan]:
        """The plans beside the other documents of their runs, by number."""
        return {plan.number: plan for plan in _readable_plans(self.ledger.plan, self.ledger.runs())}


def _readable_plans(read: Callable[[Item], Plan | None], items: Iterable[Item]) -> Iterator[Plan]:
    for item in items:
        with suppress(DocumentError):
            if plan := read(item):
                yield plan

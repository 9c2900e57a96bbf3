"""The documents of restores. A plan is created once; a report replaces only the version that was read."""

from collections.abc import Iterator
from typing import TypeVar

from kafka_archiver.ledger.documents import Documents, Stored
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.object_keys import restore_document
from kafka_archiver.model.offset_map import OffsetMap
from kafka_archiver.model.restore import RestorePage, RestorePlan, RestoreReport, RestoreSource
from kafka_archiver.model.restored_groups import GroupsReport
from kafka_archiver.model.restored_schemas import RestoreSchemas

OfRestore = TypeVar("OfRestore", RestorePlan, RestoreReport, OffsetMap, GroupsReport, RestoreSchemas)
_NAMES: dict[type, str] = {
    RestorePlan: "plan", RestoreReport: "report", OffsetMap: "map", GroupsReport: "groups", RestoreSchemas: "schemas",
}  # fmt: skip


class RestoreDocuments(Documents):
    """The plans, pages and reports of restores."""

    __slots__ = ()

    def restore_plan(self, restore: str) -> RestorePlan | None:
        """Return the plan of a restore; None when it has none."""
        return self._of_restore(RestorePlan, restore).document

    def create_restore_plan(self, plan: RestorePlan) -> RestorePlan:
        """Freeze the plan of a restore. Return the plan that counts: this one, or the first one."""
        return self._first(restore_document(self.archive, plan.restore, "plan"), plan)

    def put_restore_page(self, restore: str, page: RestorePage) -> None:
        """Write a page of a plan that is not frozen yet. Its name is its digest, so equal pages are one."""
        self.store.create(restore_document(self.archive, restore, f"pages/{page.digest}"), self._bytes(page))

    def restore_pages(self, restore: str, source: RestoreSource, start: int = 0) -> Iterator[RestorePage]:
        """Yield the pages of a source partition with offsets from `start` on, one request each.

        :raises IntegrityError: one is gone, or is not the one that the plan names.
        """
        for entry in source.pages:
            if entry.end <= start:
                continue
            key = restore_document(self.archive, restore, f"pages/{entry.digest}")
            page = self._read(RestorePage, key)
            if page is None or page.digest != entry.digest or page.source.name != source.name:
                raise IntegrityError(
                    f"{self._name(key)} is {'gone' if page is None else 'not the page that the plan names'}: restore "
                    "it from a version or copy of the store, or begin a restore of another name"
                )
            yield page

    def restore_report(self, restore: str) -> Stored[RestoreReport]:
        """Return the last report of a restore, to be replaced."""
        return self._of_restore(RestoreReport, restore)

    def restore_map(self, restore: str) -> Stored[OffsetMap]:
        """Return the offset map of a restore, to be replaced."""
        return self._of_restore(OffsetMap, restore)

    def restore_groups(self, restore: str) -> Stored[GroupsReport]:
        """Return what became of the consumer groups, to be replaced."""
        return self._of_restore(GroupsReport, restore)

    def restore_schemas(self, restore: str) -> Stored[RestoreSchemas]:
        """Return the schemas that a restore registers, to be replaced."""
        return self._of_restore(RestoreSchemas, restore)

    def replace_of_restore(self, document: OfRestore, before: Stored[OfRestore]) -> bool:
        """Replace a document of a restore that was read. Return False if another process was faster."""
        key = restore_document(self.archive, document.restore, _NAMES[type(document)])
        return self._replace(key, self._bytes(document), before)

    def _of_restore(self, kind: type[OfRestore], restore: str) -> Stored[OfRestore]:
        key = restore_document(self.archive, restore, _NAMES[kind])
        stored = self._version(kind, key)
        if stored.document and stored.document.restore != restore:
            raise self._foreign(key, "restore", stored.document.restore, restore)
        return stored

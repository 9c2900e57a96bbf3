"""Documents read from the store and written there: each that is read is checked to be the one that its key promises."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, NoReturn, TypeVar

from kafka_archiver.messages.errors import DocumentError, TransientError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.acknowledged import Acknowledgement
from kafka_archiver.model.adopted import AdoptedListing, AdoptedPage, AdoptedReading, Adoption, AdoptionBegun
from kafka_archiver.model.data_keys import DataKeyDocument
from kafka_archiver.model.manifest import Commit, Intent, Manifest, Settled
from kafka_archiver.model.object_keys import run_document
from kafka_archiver.model.offset_map import OffsetMap
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import HourPage, HourProof
from kafka_archiver.model.restore import RestorePage, RestorePlan, RestoreReport
from kafka_archiver.model.restored_groups import GroupsReport
from kafka_archiver.model.restored_schemas import RestoreSchemas
from kafka_archiver.model.schemas import SchemaDocument
from kafka_archiver.model.set_aside import SetAside
from kafka_archiver.model.snapshots import GroupsSnapshot, TopicsSnapshot
from kafka_archiver.store import Store

if TYPE_CHECKING:
    # Not at runtime: without encryption nobody needs the library.
    from kafka_archiver.encryption import Keyring

AnyDocument = TypeVar(
    "AnyDocument",
    Plan,
    SetAside,
    Intent,
    Manifest,
    Commit,
    Settled,
    HourProof,
    HourPage,
    Progress,
    SchemaDocument,
    DataKeyDocument,
    Acknowledgement,
    Adoption,
    AdoptionBegun,
    AdoptedPage,
    AdoptedListing,
    AdoptedReading,
    TopicsSnapshot,
    GroupsSnapshot,
    RestorePlan,
    RestorePage,
    RestoreReport,
    GroupsReport,
    RestoreSchemas,
    OffsetMap,
)


class Stored(NamedTuple, Generic[AnyDocument]):
    """A document as it was read, and its ETag: it may be replaced only while it is still the same."""

    document: AnyDocument | None
    etag: str | None


@dataclass(frozen=True, slots=True)
class Documents:
    """Documents of one archive on its store. `Ledger` describes the fields.

    :raises DocumentError: in every method that reads: the document is damaged, or another document.
    """

    store: Store
    archive: str
    keyring: "Keyring | None" = field(default=None, repr=False)

    def _run_key(self, run: str, name: str) -> str:
        return run_document(self.archive, run, name)

    def _name(self, key: str) -> str:
        return f"{self.store.url}/{key}"

    def _bytes(self, document: AnyDocument) -> bytes:
        if document.archive != self.archive:
            raise DocumentError(
                f"a document of archive {document.archive!r} does not belong in the ledger of {self.archive!r}"
            )
        return document.to_bytes()

    def _read(self, kind: type[AnyDocument], key: str, run: str | None = None) -> AnyDocument | None:
        return self._version(kind, key, run).document

    def _version(self, kind: type[AnyDocument], key: str, run: str | None = None) -> Stored[AnyDocument]:
        version = self.store.version(key)
        if version is None:
            return Stored(None, None)
        document = kind.from_json(version.data, self._name(key))
        if document.archive != self.archive:
            raise self._foreign(key, "archive", document.archive, self.archive)
        if run is not None and (found_run := getattr(document, "run", None)) != run:
            raise self._foreign(key, "run", found_run, run)
        return Stored(document, version.etag)

    def _first(self, key: str, document: AnyDocument, run: str | None = None) -> AnyDocument:
        """Create a document. Return the one that counts: this one, or the one that was there."""
        if self.store.create(key, self._bytes(document)):
            return document
        return self._read(type(document), key, run) or self._gone(key)

    def _replace(self, key: str, data: bytes, before: Stored[AnyDocument]) -> bool:
        return self.store.create(key, data) if before.etag is None else self.store.replace(key, data, before.etag)

    def _foreign(self, key: str, field: str, actual: object, expected: object) -> DocumentError:
        return DocumentError(
            f"{self._name(key)} is not the document its key promises: found {field} {foreign(str(actual))}, expected "
            f"{expected}. "
            "It was copied or moved there; restore the right one from a backup of the store"
        )

    def _gone(self, key: str) -> NoReturn:
        raise TransientError(f"{self._name(key)} existed when it was to be written, and is gone now")

"""The ledger: an archive's documents on its store, one module for each kind."""

from kafka_archiver.ledger.adopted import AdoptedDocuments
from kafka_archiver.ledger.data_keys import DataKeyDocuments
from kafka_archiver.ledger.derived import DerivedDocuments
from kafka_archiver.ledger.documents import Documents
from kafka_archiver.ledger.line import LineDocuments
from kafka_archiver.ledger.restores import RestoreDocuments
from kafka_archiver.ledger.schemas import SchemaDocuments, SnapshotDocuments
from kafka_archiver.model.acknowledged import Acknowledgement
from kafka_archiver.model.manifest import Claim
from kafka_archiver.model.object_keys import (
    acknowledged_document,
    acknowledged_prefix,
    claim_document,
    split_acknowledged_document,
)


class AcknowledgedDocuments(Documents):
    """The accepted findings of an archive."""

    __slots__ = ()

    def acknowledgement(self, finding: str) -> Acknowledgement | None:
        """Return the last decision about a finding; None if there is none. Makes a request for each, and one more."""
        last, number = None, 1
        while document := self._read(Acknowledgement, acknowledged_document(self.archive, finding, number)):
            last, number = document, number + 1
        return last

    def acknowledgements(self) -> list[Acknowledgement]:
        """Return the last decision about each finding that was ever decided about. Lists the store."""
        places = (
            split_acknowledged_document(self.archive, stat.key)
            for stat in self.store.list(acknowledged_prefix(self.archive))
        )
        names = sorted({place[0] for place in places if place})
        return [last for name in names if (last := self.acknowledgement(name))]

    def acknowledge(self, decision: Acknowledgement) -> bool:
        """Store a decision. Returns False if another one was faster."""
        key = acknowledged_document(self.archive, decision.finding, decision.number)
        return self.store.create(key, self._bytes(decision))


class ClaimDocuments(Documents):
    """The topics of an archive."""

    __slots__ = ()

    def claim(self, topic: str) -> str:
        """Claim a topic for this archive. Returns the archive that has it: this one, or the one that was first."""
        key = claim_document(topic)
        if self.store.create(key, Claim(archive=self.archive, topic=topic).to_json()):
            return self.archive
        return self.claimed(topic) or self._gone(key)

    def claimed(self, topic: str) -> str | None:
        """The archive that has claimed a topic in this store; None: none has."""
        key = claim_document(topic)
        data = self.store.get(key)
        return None if data is None else Claim.from_json(data, self._name(key)).archive


class Ledger(
    LineDocuments,
    DataKeyDocuments,
    SchemaDocuments,
    SnapshotDocuments,
    AcknowledgedDocuments,
    ClaimDocuments,
    AdoptedDocuments,
    RestoreDocuments,
    DerivedDocuments,
):
    """The documents of one archive.

    `keyring`: the master keys, if the archive encrypts its objects before it sends them.

    :raises DocumentError: in every method that reads: the document is damaged, or another document.
    """

    __slots__ = ()

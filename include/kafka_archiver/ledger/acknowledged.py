"""The decisions of people about findings, numbered for each finding."""

from kafka_archiver.ledger.documents import Documents
from kafka_archiver.model.acknowledged import Acknowledgement
from kafka_archiver.model.keys import acknowledged_document, acknowledged_prefix, split_acknowledged_document


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

"""Claims: which archive of a store has a topic."""

from kafka_archiver.ledger.documents import Documents
from kafka_archiver.model.keys import claim_document
from kafka_archiver.model.manifest import Claim


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

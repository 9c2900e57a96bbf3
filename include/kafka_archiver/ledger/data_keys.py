"""The wrapped data keys of archives that encrypt their objects before they send them."""

from kafka_archiver.ledger.documents import Stored
from kafka_archiver.ledger.runs import RunDocuments
from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.model.data_keys import DataKey, DataKeyDocument
from kafka_archiver.model.object_keys import SEALED, key_document, ledger_prefix, split_key_document
from kafka_archiver.model.plan import Plan


class DataKeyDocuments(RunDocuments):
    """The data keys of an archive."""

    __slots__ = ()

    def data_key(self, key_id: str) -> Stored[DataKeyDocument]:
        """A wrapped data key, to be replaced.

        :raises IntegrityError: it is gone.
        """
        key = key_document(self.archive, key_id)
        stored = self._version(DataKeyDocument, key)
        if stored.document is None:
            raise IntegrityError(
                f"{self._name(key)} is gone: without it nobody can decrypt the objects of the plan that names it. "
                "Restore it from a version or copy of the store"
            )
        if stored.document.id != key_id:
            raise self._foreign(key, "id", stored.document.id, key_id)
        return stored

    def has_data_key(self, key_id: str) -> bool:
        return self.store.head(key_document(self.archive, key_id)) is not None

    def open_key(self, key_id: str) -> DataKey:
        """A data key, unwrapped.

        :raises ConfigError: the archive's configuration names no master key, or another one.
        """
        if self.keyring is None:
            raise ConfigError(
                f"objects of archive {self.archive} are encrypted with data key {key_id}, and no master key is given: "
                "expected `store.encryption: {client: …}` in the archive's YAML; `encrypt: false` there leaves new "
                "plans as they are"
            )
        return self.keyring.open(self.data_key(key_id).document or self._gone(key_document(self.archive, key_id)))

    def keys_of(self, plan: Plan) -> dict[str, DataKey]:
        """The data keys that a run needs, by id: its own, and those of the dead letters that it reads."""
        plans = [plan, *(self.writer_of(plan, item.key) for item in plan.letters if item.key.endswith(SEALED))]
        return {key_id: self.open_key(key_id) for key_id in sorted({p.data_key for p in plans if p.data_key})}

    def data_keys(self) -> list[str]:
        """The ids of all data keys. Lists the store: for rotations only."""
        listed = self.store.list(f"{ledger_prefix(self.archive)}keys/")
        return [key_id for s in listed if (key_id := split_key_document(self.archive, s.key)) is not None]

    def create_data_key(self, document: DataKeyDocument) -> None:
        """Store a new data key."""
        self.store.create(key_document(self.archive, document.id), self._bytes(document))

    def put_data_key(self, document: DataKeyDocument, before: Stored[DataKeyDocument]) -> bool:
        """Replace the wrapped data key that was read. False when another process was faster."""
        return self._replace(key_document(self.archive, document.id), self._bytes(document), before)

"""The ledger: an archive's documents on its store, one module for each kind."""

from kafka_archiver.ledger.acknowledged import AcknowledgedDocuments
from kafka_archiver.ledger.adopted import AdoptedDocuments
from kafka_archiver.ledger.claims import ClaimDocuments
from kafka_archiver.ledger.data_keys import DataKeyDocuments
from kafka_archiver.ledger.derived import DerivedDocuments
from kafka_archiver.ledger.line import LineDocuments
from kafka_archiver.ledger.restores import RestoreDocuments
from kafka_archiver.ledger.schemas import SchemaDocuments
from kafka_archiver.ledger.snapshots import SnapshotDocuments


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

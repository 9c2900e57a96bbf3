"""Object stores. Only this package imports boto3 and Azure's clients."""

from kafka_archiver.store.base import PendingUpload, Stat, Store, UploadedPart
from kafka_archiver.store.open import open_store

__all__ = ["PendingUpload", "Stat", "Store", "UploadedPart", "open_store"]

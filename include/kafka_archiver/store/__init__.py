"""Object stores. Only this package imports boto3."""

from kafka_archiver.store.base import Part, PendingUpload, Stat, Store
from kafka_archiver.store.open import open_store

__all__ = ["Part", "PendingUpload", "Stat", "Store", "open_store"]

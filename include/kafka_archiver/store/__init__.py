"""Object stores: the only place that knows the S3 client."""

from kafka_archiver.store.base import Part, PendingUpload, Stat, Store

__all__ = ["Part", "PendingUpload", "Stat", "Store"]

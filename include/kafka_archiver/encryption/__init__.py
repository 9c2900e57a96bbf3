"""Encryption before the store: sealed objects, data keys, and the master keys that wrap them.

Only this package and the audit's own reader import `cryptography`.
"""

from kafka_archiver.encryption.masters import Keyring
from kafka_archiver.encryption.opened import OpenedObject
from kafka_archiver.encryption.sealed import Sealer

__all__ = ["Keyring", "OpenedObject", "Sealer"]

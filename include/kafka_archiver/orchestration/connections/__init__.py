"""Addresses and credentials of brokers, store and registry, from Airflow's connections."""

from kafka_archiver.orchestration.connections.archive import (
    endpoints,
    open_archive,
    open_ledger,
    open_store,
    target_endpoints,
)
from kafka_archiver.orchestration.connections.kafka import kafka_endpoint, registry_endpoint, target_registry
from kafka_archiver.orchestration.connections.lookup import NamedConnection, find_connection, mask_secrets

__all__ = [
    "NamedConnection",
    "endpoints",
    "find_connection",
    "kafka_endpoint",
    "mask_secrets",
    "open_archive",
    "open_ledger",
    "open_store",
    "registry_endpoint",
    "target_endpoints",
    "target_registry",
]

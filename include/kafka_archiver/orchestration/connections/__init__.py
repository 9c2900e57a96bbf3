"""Addresses and credentials of brokers, store and registry, from Airflow's connections."""

from kafka_archiver.orchestration.connections.archive import endpoints, open_archive, open_ledger, open_store
from kafka_archiver.orchestration.connections.hidden import hidden
from kafka_archiver.orchestration.connections.kafka import kafka_endpoint
from kafka_archiver.orchestration.connections.lookup import Wanted, find
from kafka_archiver.orchestration.connections.registry import registry_endpoint

__all__ = [
    "Wanted",
    "endpoints",
    "find",
    "hidden",
    "kafka_endpoint",
    "open_archive",
    "open_ledger",
    "open_store",
    "registry_endpoint",
]

"""Where what an archive names is: its brokers and its store."""

from kafka_archiver.config import Archive
from kafka_archiver.orchestration.connections.kafka import kafka_endpoint
from kafka_archiver.orchestration.connections.store import store_endpoint
from kafka_archiver.steps.context import Endpoints


def endpoints(archive: Archive) -> Endpoints:
    """Where the archive's brokers and store are, and who we are to them. What is secret in it is kept out of logs.

    :raises ConfigError: a connection is missing, of another type or incomplete, or not for the archive's reader.
    """
    return Endpoints(kafka=kafka_endpoint(archive), store=store_endpoint(archive))

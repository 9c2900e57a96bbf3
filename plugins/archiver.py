"""Airflow's plugin, for a checkout on PYTHONPATH. An installed package needs no file here: it has an entry point."""

from kafka_archiver.orchestration.plugin import ArchiverPlugin

__all__ = ["ArchiverPlugin"]

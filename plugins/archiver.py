"""Airflow's plugin, for a checkout on PYTHONPATH.

An installed package needs no file here: it has an entry point, and Airflow would call the same plugin here an import
error.
"""

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="archiver"):
    from kafka_archiver.orchestration.plugin import ArchiverPlugin

    __all__ = ["ArchiverPlugin"]

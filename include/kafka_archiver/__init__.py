"""Kafka topics copied to an object store, exactly once, filed by hour, with a proof of completeness."""

__version__ = "0.5.0"

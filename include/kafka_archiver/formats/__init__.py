"""File formats: each a module or folder of its own, found by its name in the registry."""

from kafka_archiver.formats.registry import get_format, names, resolve

__all__ = ["get_format", "names", "resolve"]

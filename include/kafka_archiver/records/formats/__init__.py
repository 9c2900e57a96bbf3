"""File formats: one module or folder each. The registry finds them by name."""

from kafka_archiver.records.formats.registry import extension_of, get_format, names, resolve

__all__ = ["extension_of", "get_format", "names", "resolve"]

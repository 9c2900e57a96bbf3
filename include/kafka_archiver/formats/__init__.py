"""File formats: one module or folder each. The registry finds them by name."""

from kafka_archiver.formats.registry import get_format, names, resolve

__all__ = ["get_format", "names", "resolve"]

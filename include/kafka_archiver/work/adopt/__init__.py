"""Adopt the objects of another tool: list them once, read each once, and freeze what is known of them."""

from kafka_archiver.work.adopt.adopt import adopt
from kafka_archiver.work.adopt.listing import Preview, preview

__all__ = ["Preview", "adopt", "preview"]

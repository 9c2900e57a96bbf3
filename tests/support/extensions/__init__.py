"""Extensions as a third party adds them, one file each. The fixture `install` is the line of its entry point."""

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any, Protocol

import pytest

from kafka_archiver.audit import readers
from kafka_archiver.model import decoders, stores, transforms


class Install(Protocol):
    def __call__(self, group: str, /, **names: str) -> None:
        """See `add_entry_points`."""


def add_entry_points(monkeypatch: pytest.MonkeyPatch, group: str, **names: str) -> None:
    """Install entry points, besides those that are installed.

    :param group: without `kafka_archiver.`. :param names: `module:object` by the entry point's name.
    """
    current: Any = readers.entry_points
    points = [EntryPoint(name, place, f"kafka_archiver.{group}") for name, place in names.items()]

    def entry_points(**match: Any) -> EntryPoints:
        return EntryPoints([*current(**match), *EntryPoints(points).select(**match)])

    monkeypatch.setattr("kafka_archiver.messages.entry_points.entry_points", entry_points)
    monkeypatch.setattr(readers, "entry_points", entry_points)
    forget()


def forget() -> None:
    """Forget what was loaded: the next look finds what is installed then."""
    for cached in (readers._added, decoders.decoder_type, transforms.step_type, stores.store_of):
        cached.cache_clear()

"""The layouts by name. A new layout is a file and a line here."""

from collections.abc import Collection

from kafka_archiver.errors import ConfigError, DocumentError
from kafka_archiver.layouts.base import Filed, Layout
from kafka_archiver.layouts.hourly import Hourly
from kafka_archiver.plan import Settings

LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (Hourly(),)}


def layout_of(settings: Settings) -> Layout:
    """The layout of a run's objects.

    :raises ConfigError: this release has no layout of that name.
    """
    if settings.layout not in LAYOUTS:
        raise ConfigError(f"store.layout: expected {' | '.join(LAYOUTS)}, found {settings.layout!r}")
    return LAYOUTS[settings.layout]


def layout_at(path: str) -> Layout | None:
    """The layout that has this path, for callers with a key but no plan; None: no layout has it."""
    for layout in LAYOUTS.values():
        try:
            layout.parse(path)
        except ValueError:
            continue
        return layout
    return None


def hours_of(entry: Filed) -> Collection[int | None]:
    """The hours that an object's records may belong to, whatever its layout.

    :raises DocumentError: no layout has its path.
    """
    layout = layout_at(entry.path)
    if layout is None:
        raise DocumentError(
            f"a manifest has an object in {entry.path!r}, which is not a path of a layout of this release "
            f"({', '.join(LAYOUTS)}): a later release wrote the manifest, or somebody has changed it"
        )
    return layout.hours(entry)

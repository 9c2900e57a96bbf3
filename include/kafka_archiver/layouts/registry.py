"""The layouts by name. A new one is a file and a line here."""

from collections.abc import Collection

from kafka_archiver.errors import ConfigError, DocumentError
from kafka_archiver.layouts.base import Filed, Layout
from kafka_archiver.layouts.hourly import Hourly
from kafka_archiver.plan import Settings

LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (Hourly(),)}


def layout_of(settings: Settings) -> Layout:
    """The layout by which a run's objects are filed.

    :raises ConfigError: this release has none of that name.
    """
    if settings.layout not in LAYOUTS:
        raise ConfigError(f"store.layout: expected {' | '.join(LAYOUTS)}, found {settings.layout!r}")
    return LAYOUTS[settings.layout]


def layout_at(path: str) -> Layout | None:
    """The layout whose path this is, for those who have a key and no plan; None: of no layout."""
    for layout in LAYOUTS.values():
        try:
            layout.parse(path)
        except ValueError:
            continue
        return layout
    return None


def hours_of(entry: Filed) -> Collection[int | None]:
    """The hours that records of an object may be of, whatever its layout.

    :raises DocumentError: its path is of no layout that there is.
    """
    layout = layout_at(entry.path)
    if layout is None:
        raise DocumentError(
            f"a manifest has an object in {entry.path!r}, which is no path of a layout of this release "
            f"({', '.join(LAYOUTS)}): a later release wrote it, or somebody has changed it"
        )
    return layout.hours(entry)

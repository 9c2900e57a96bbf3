"""The archives of the configuration, and snapshots of them, as the page knows them."""

import logging
import os
import time
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TypeAlias, cast

from kafka_archiver.config import Archive
from kafka_archiver.config.archives import Archives, WrongFileError, read_archives
from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.model.findings import Finding
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.folder import config_folder
from kafka_archiver.orchestration.metadata.facts import facts_of
from kafka_archiver.orchestration.metadata.undeclared import UndeclaredArchive, checks_of_file, undeclared_archives
from kafka_archiver.orchestration.page.cache import Cache, Near
from kafka_archiver.state.health.judge import STALE, checks_of
from kafka_archiver.state.overview import Snapshot, take_snapshot
from kafka_archiver.state.status.facts import Facts
from kafka_archiver.store import Store
from kafka_archiver.store.read_once import ReadOnce

log = logging.getLogger(__name__)
# Seconds after which an archive is looked at again, if somebody asks.
FRESH = float(os.environ.get("ARCHIVER_PAGE_SECONDS") or 30)
# Seconds for each archive, if that is longer: with 1,000 archives, not all of them every 30 seconds.
PER_ARCHIVE = 0.2
# Seconds for each answer of the brokers: a page should say soon that they do not answer.
BROKER_SECONDS = 8.0
_Signature: TypeAlias = tuple[tuple[str, int, int], ...]


class ArchiveSnapshots:
    """Reads the configuration when it changes, and looks at archives when somebody asks."""

    def __init__(self, fresh: float = FRESH) -> None:
        self._fresh = fresh
        self._cache: Cache[str, Snapshot] = Cache(self._look, fresh)
        self._lock = Lock()
        self._read: tuple[Path, _Signature, Archives] | None = None
        self._former: tuple[float, dict[str, UndeclaredArchive]] | None = None

    def archives(self) -> Archives:
        """Return the archives now, also those whose file is wrong or gone, as Airflow has kept them; see `fault`.

        Reading 1,000 files takes seconds, so they are read only when one of them has changed.
        """
        folder = config_folder()
        with self._lock:
            signature = _signature(folder)
            if self._read is None or self._read[:2] != (folder, signature):
                self._read = (folder, signature, read_archives(folder))
                self._former = None
            declared = self._read[2]
            if self._former is None or time.monotonic() - self._former[0] >= self._fresh:
                self._former = (time.monotonic(), undeclared_archives(declared))
                known = {*declared.valid, *self._former[1]}
                self._cache.keep(known)
                self._cache.fresh = max(self._fresh, PER_ARCHIVE * len(known))
            former = {name: entry.archive for name, entry in self._former[1].items()}
            return declared._replace(valid=dict(sorted({**declared.valid, **former}.items())))

    def fault(self, name: str) -> UndeclaredArchive | None:
        """Return why no valid file declares the archive; None if one does."""
        return self._former[1].get(name) if self._former else None

    def wrong_files(self, name: str) -> list[WrongFileError]:
        """Return the errors of the files that are to declare an archive that no valid file declares."""
        errors = self._read[2].errors if self._read and self.fault(name) else ()
        return [error for error in errors if isinstance(error, WrongFileError) and error.archive == name]

    def checks(self, archive: Archive, snapshot: Snapshot | None, moment: datetime) -> list[Finding]:
        """Return all checks of an archive, that of its file first.

        A look is judged as of its own time, later only by the time for which a fresher one has been awaited in vain:
        that nobody opened a page for hours is no fault of the archive.

        :param snapshot: None: nobody has looked yet.
        """
        if snapshot:
            moment = min(moment, snapshot.taken_at + timedelta(seconds=self._cache.waited(archive.archive)))
        return [*checks_of_file(self.fault(archive.archive)), *checks_of(archive, snapshot, moment)]

    def snapshots(
        self, names: Collection[str], wait: float = 0.0, near: Near | None = None
    ) -> dict[str, Snapshot | None]:
        """Return the last snapshots; those that are not fresh are made again in the background.

        :param wait: seconds to wait for archives that nobody has looked at yet.
        :param near: wait for fresher ones, too.
        """
        return self._cache.many(names, wait, near)

    def current(self, names: Collection[str], wait: float) -> dict[str, Snapshot | None]:
        """Return the snapshots for a machine that asks rarely: it waits for fresh ones, too, if they are stale."""
        snapshots, moment = self.snapshots(names, wait), datetime.now(UTC)
        stale = [name for name, snapshot in snapshots.items() if snapshot and moment - snapshot.taken_at > STALE]
        return snapshots | self.snapshots(stale, near=Near(STALE.total_seconds(), wait))

    def known(self, name: str) -> Snapshot | None:
        """Return the last snapshot, however old; nothing is asked."""
        return self._cache.known(name)

    def is_awaited(self, name: str) -> bool:
        """Return True if somebody is looking at this archive now."""
        return self._cache.is_awaited(name)

    def again(self, name: str) -> None:
        """Look at this archive again at the next request."""
        self._cache.forget(name.__eq__)

    def look_at(self, context: Context, facts: Facts) -> Snapshot:
        """Look at an archive now, and keep the snapshot for all pages."""
        name, begun = context.archive.archive, time.monotonic()
        snapshot = _look(context, facts, self._cache.known(name))
        self._cache.put(name, snapshot, time.monotonic() - begun)
        return snapshot

    def _look(self, name: str, before: Snapshot | None) -> Snapshot:
        moment = datetime.now(UTC)
        archive = self.archives().valid.get(name)
        if archive is None:
            return Snapshot(archive=name, taken_at=moment, error="its YAML is gone, or wrong")
        try:
            context = open_for_one_look(archive)
        except ArchiverError as error:
            return Snapshot(archive=name, taken_at=moment, error=str(error))
        return _look(context, facts_of(archive, moment), before)


def open_for_page(archive: Archive) -> Context:
    """Open the archive with its brokers, store and ledger; makes no request. Raises ConfigError."""
    context = open_archive(archive)
    context.cluster.timeout = min(getattr(context.cluster, "timeout", BROKER_SECONDS), BROKER_SECONDS)
    return context


def open_for_one_look(archive: Archive) -> Context:
    """Open the archive so that each document is read once, however often it is asked for. Raises ConfigError."""
    context = open_for_page(archive)
    store = cast("Store", ReadOnce(context.store))
    return replace(context, store=store, ledger=replace(context.ledger, store=store))


def _look(context: Context, facts: Facts, before: Snapshot | None) -> Snapshot:
    try:
        return take_snapshot(context, facts, before)
    except ArchiverError as error:
        return Snapshot(archive=context.archive.archive, taken_at=datetime.now(UTC), error=str(error))


def _signature(folder: Path) -> _Signature:
    """Return a value that changes with each file of the folder, also with schemas beside the YAML files."""
    try:
        entries = [(entry.name, entry.stat()) for entry in os.scandir(folder)]
    except OSError:
        return ()
    return tuple(sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in entries))

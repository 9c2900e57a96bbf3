"""The archives of this Airflow: the YAML files of one folder, the good ones apart from the wrong ones."""

import os
from pathlib import Path

import kafka_archiver
from kafka_archiver.config import Archive, archive_files, load_archive
from kafka_archiver.errors import ConfigError


def config_folder() -> Path:
    """Where the YAML files are: ARCHIVER_CONFIG_DIR, or `archives` beside the package."""
    return Path(os.environ.get("ARCHIVER_CONFIG_DIR") or Path(kafka_archiver.__file__).parents[1] / "archives")


def read_archives(folder: Path) -> tuple[dict[str, Archive], list[ConfigError]]:
    """The archives of a folder by name, sorted, and what is wrong with the other files.

    One wrong file takes nothing from the others; a missing folder is the only error, then.
    """
    try:
        files = archive_files(folder)
    except ConfigError as error:
        return {}, [error]
    found: dict[str, dict[Path, Archive]] = {}
    errors: list[ConfigError] = []
    for file in files:
        try:
            archive = load_archive(file)
        except ConfigError as error:
            errors.append(error)
        else:
            found.setdefault(archive.archive, {})[file] = archive
    archives = {}
    for name, candidates in sorted(found.items()):
        chosen = _choose(name, candidates)
        if chosen:
            archives[name] = candidates[chosen]
        errors += [
            _twice(name, file, chosen or next(f for f in candidates if f != file))
            for file in candidates
            if file != chosen and len(candidates) > 1
        ]
    return archives, errors


def _choose(name: str, candidates: dict[Path, Archive]) -> Path | None:
    """The file that keeps a name: the only one, or the one that is called like it.

    A copy of orders.yaml, made to start a new archive and saved before its name was changed, must not take over.
    """
    named = [file for file in candidates if file.stem == name]
    return next(iter(candidates)) if len(candidates) == 1 else named[0] if len(named) == 1 else None


def _twice(name: str, file: Path, other: Path) -> ConfigError:
    return ConfigError(f"{file}: `archive`: the name {name!r} is taken by {other}; give each archive a name of its own")

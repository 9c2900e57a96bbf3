"""Where archives are declared: the YAML files of a folder, and environment variables."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kafka_archiver.config.archive import Archive
from kafka_archiver.config.environment import archive_of, place, prefixes
from kafka_archiver.config.load import archive_files, load_archive

FOLDER = "ARCHIVER_CONFIG_DIR"


class Declaration(NamedTuple):
    """A place that declares one archive. `file`: the YAML file, or `environment variables ARCHIVER_*`."""

    file: Path
    load: Callable[[], Archive]


def declarations(folder: Path, environ: Mapping[str, str]) -> list[Declaration]:
    """The places that declare archives: the files by name, then the environment.

    :raises ConfigError: there is no such folder, and either somebody chose it or the environment has no archive.
    """
    described = [
        Declaration(Path(place(prefix)), partial(archive_of, prefix, environ, folder)) for prefix in prefixes(environ)
    ]
    if described and not folder.is_dir() and not environ.get(FOLDER):
        return described
    return [*(Declaration(file, partial(load_archive, file)) for file in archive_files(folder)), *described]

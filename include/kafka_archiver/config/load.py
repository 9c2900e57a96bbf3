"""Load archives from YAML files. A ConfigError names the file, the key, what was expected and what was found."""

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kafka_archiver.config.archive import Archive
from kafka_archiver.config.kinds import with_lists, wrong_key
from kafka_archiver.config.yaml_limits import read_bounded, require_bounded
from kafka_archiver.config.yaml_text import Read, located, read_yaml
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.yaml_faults import Fault, FaultyYamlError, faults_of, kind_of

# The modules of each extra. pyproject.toml has the distributions.
EXTRAS = {
    "avro": ("fastavro",),
    "protobuf": ("google.protobuf", "grpc_tools", "ptars"),
    "json-schema": ("jsonschema_rs",),
    "encryption": ("cryptography",),
    "azure": ("azure.storage.blob", "azure.identity"),
}


def extras_of(archive: Archive) -> Iterator[tuple[str, str]]:
    """Yield the extras that an archive needs, each with the part of the YAML that needs it."""
    settings = archive.settings
    decoders = {settings.key_decode, settings.value_decode, *(header.decode for header in settings.headers)}
    for extra in EXTRAS:
        if (name := extra.replace("-", "_")) in decoders:
            yield extra, f"`decode: {name}`"
    if settings.format == "avro":
        yield "avro", "`store.format: avro`"
    if archive.store.url.startswith("az://"):
        yield "azure", "`store.url: az://…`"
    if archive.store.encryption.client:
        yield "encryption", "`store.encryption.client`"


def require_extras(archive: Archive) -> None:
    """:raises ConfigError: packages of an extra that the archive needs are not installed; names the command."""
    for extra, why in extras_of(archive):
        if missing := [module for module in EXTRAS[extra] if not is_installed(module)]:
            names = " and ".join(missing)
            raise ConfigError(f"{why} needs {names}, which is not installed: pip install 'kafka-archiver[{extra}]'")


def is_installed(module: str) -> bool:
    """Return True if a module can be imported, without an import of itself."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The package above it is missing.
        return False


def parse_archive(text: str, file: str, environ: Mapping[str, str] | None = None) -> Archive:
    """An archive from YAML text.

    :param file: the name of the text in messages; schemas in files are beside it.
    :param environ: the environment variables that the text may name; None: those of the process.
    :raises ConfigError: the text is not YAML, or not an archive, or names a missing variable.
    """
    try:
        read = read_yaml(text, os.environ if environ is None else environ)
        require_bounded(read.content)
    except FaultyYamlError as error:
        raise _placed(error.faults, text, file) from None
    except (ConfigError, ValueError) as error:
        raise ConfigError("\n".join(f"{file}: {line}" for line in str(error).splitlines())) from None
    try:
        return make_archive(read, file, Path(file).parent)
    except FaultyYamlError as error:
        raise _placed(error.faults, text) from None


def _placed(faults: Iterable[Fault], text: str, file: str = "") -> FaultyYamlError:
    """Return the error with the lines of its faults.

    :param file: the text's name, if the faults do not say it.
    """
    before = f"{file}: " if file else ""
    placed = (located(text, fault) for fault in faults)
    return FaultyYamlError(fault._replace(text=f"{before}{fault.text}") for fault in placed)


def make_archive(read: Read, file: str, folder: Path) -> Archive:
    """An archive from the values of a YAML.

    :param file: where the values are from, for messages.
    :param folder: of the files of schemas.
    :raises ConfigError: the values are not an archive.
    """
    content: Any = with_lists(read.content, read.variables)
    if not isinstance(content, dict):
        kind = kind_of(content)
        raise ConfigError(f"{file}: expected a mapping with the keys archive, source and store; found {kind}")
    try:
        archive = Archive.model_validate(content, context={"folder": folder})
    except ValidationError as error:
        faults = dict.fromkeys(faults_of(error, wrong_key, variables=read.variables))
        raise FaultyYamlError(fault._replace(text=f"{file}: {fault.text}") for fault in faults) from None
    try:
        require_extras(archive)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    return archive.of_file(file)


def load_archive(path: Path) -> Archive:
    """The archive in one YAML file. Raises ConfigError."""
    try:
        text = read_bounded(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    return parse_archive(text, str(path))


def archive_files(folder: Path) -> list[Path]:
    """The YAML files of a folder of archives, sorted. Raises ConfigError when there is no such folder."""
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: no such folder; set ARCHIVER_CONFIG_DIR to the folder with your archives' YAML files"
        )
    return sorted(p for p in folder.iterdir() if p.suffix in (".yaml", ".yml") and not p.name.startswith("."))

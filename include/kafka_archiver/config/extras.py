"""The extras of the distribution that an archive needs, and whether their packages are installed here."""

from collections.abc import Iterator
from importlib.util import find_spec

from kafka_archiver.config.archive import Archive
from kafka_archiver.messages.errors import ConfigError

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
    """Return whether a module can be imported, without an import of itself."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The package above it is missing.
        return False

"""Options for an archive's store, from a connection or the mapping in its place, and from the YAML."""

from kafka_archiver.config import Archive
from kafka_archiver.config.properties import is_plain_address
from kafka_archiver.messages.entry_points import imported
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.stores import StoreType, store_of
from kafka_archiver.orchestration.connections.keys import customer_key
from kafka_archiver.orchestration.connections.lookup import NamedConnection, find_connection
from kafka_archiver.orchestration.connections.properties import mask_secrets, text


def store_endpoint(archive: Archive) -> dict[str, str]:
    """Return the store's part of `endpoints`. Raises ConfigError."""
    kind = store_of(archive.store.url)
    key, source = archive.store.named_connection
    own = {**archive.store.requests, **customer_key(archive)}
    if not isinstance(source, str):
        where, options = f"the mapping in {key}", {name: text(value) for name, value in source.items()}
    else:
        reference = NamedConnection(source, key, kind.connections)
        where = str(reference)
        options = imported(kind.from_connection)(find_connection(reference), where)
    return mask_secrets(_checked(kind, {**options, **own}, where))


def _checked(kind: StoreType, options: dict[str, str], where: str) -> dict[str, str]:
    for name in ("endpoint_url", "sts_endpoint_url", "kms_endpoint_url"):
        if not is_plain_address(options.get(name) or "http://host"):
            # The message does not repeat the address: it may hold a secret.
            raise ConfigError(
                f"{where}: expected `{name}` like http://host:port, without user, password, query and fragment"
            )
    try:
        imported(kind.check)(options)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    return options

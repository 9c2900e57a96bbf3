"""Options for an archive's store, from an aws connection or the mapping in its place, and from the YAML."""

from kafka_archiver.config import Archive
from kafka_archiver.config.properties import is_plain_address
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.connections.aws import aws_options
from kafka_archiver.orchestration.connections.encryption import customer_key
from kafka_archiver.orchestration.connections.hidden import mask_secrets, text
from kafka_archiver.orchestration.connections.lookup import NamedConnection, find_connection
from kafka_archiver.store.options import S3Options


def store_endpoint(archive: Archive) -> dict[str, str]:
    """Return the store's part of `endpoints`. Raises ConfigError."""
    source, own = archive.store.aws, {**archive.store.requests, **customer_key(archive)}
    if not isinstance(source, str):
        return mask_secrets(
            _checked({**{name: text(value) for name, value in source.items()}, **own}, "the mapping in store.aws")
        )
    reference = NamedConnection(source, "store.aws", ("aws",))
    return mask_secrets(_checked({**aws_options(find_connection(reference), str(reference)), **own}, str(reference)))


def _checked(options: dict[str, str], where: str) -> dict[str, str]:
    for name in ("endpoint_url", "sts_endpoint_url", "kms_endpoint_url"):
        if not is_plain_address(options.get(name) or "http://host"):
            # The message does not repeat the address: it may hold a secret.
            raise ConfigError(
                f"{where}: expected `{name}` like http://host:port, without user, password, query and fragment"
            )
    try:
        S3Options.parse(options)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    return options

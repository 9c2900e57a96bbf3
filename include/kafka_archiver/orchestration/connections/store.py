"""Options for an archive's store, from an aws connection or the mapping in its place, and from the YAML."""

from kafka_archiver.config import Archive
from kafka_archiver.config.properties import is_plain_address
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.connections.aws import aws_options
from kafka_archiver.orchestration.connections.encryption import customer_key
from kafka_archiver.orchestration.connections.hidden import hidden, text
from kafka_archiver.orchestration.connections.lookup import Wanted, find
from kafka_archiver.store.options import S3Options


def store_endpoint(archive: Archive) -> dict[str, str]:
    """The store's part of `endpoints`."""
    source, found = archive.store.aws, {**archive.store.requests, **customer_key(archive)}
    if not isinstance(source, str):
        return hidden(
            _checked({**{name: text(value) for name, value in source.items()}, **found}, "the mapping in store.aws")
        )
    wanted = Wanted(source, "store.aws", ("aws",))
    return hidden(_checked({**aws_options(find(wanted), str(wanted)), **found}, str(wanted)))


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

"""Options for an archive's store, from an aws connection or the mapping in its place."""

from collections.abc import Mapping
from typing import Any

from kafka_archiver.config import Archive
from kafka_archiver.errors import ConfigError
from kafka_archiver.orchestration.connections.hidden import hidden, text
from kafka_archiver.orchestration.connections.lookup import Wanted, find
from kafka_archiver.properties import is_plain_address
from kafka_archiver.store.options import S3Options


def store_endpoint(archive: Archive) -> dict[str, str]:
    """The store's part of `endpoints`."""
    return hidden(_store(archive.store.aws))


def _store(source: str | Mapping[str, Any]) -> dict[str, str]:
    if not isinstance(source, str):
        return _checked({name: text(value) for name, value in source.items()}, "the mapping in store.aws")
    wanted = Wanted(source, "store.aws", ("aws",))
    connection = find(wanted)
    return _checked(store_options(connection.login, connection.password, connection.extra_dejson), str(wanted))


def store_options(login: str | None, password: str | None, extra: Mapping[str, Any]) -> dict[str, str]:
    """An aws connection as options of the store. Without credentials, boto3 uses its own chain.

    :raises ConfigError: the connection assumes a role in a way that only Airflow's hook knows.
    """
    method = extra.get("assume_role_method", "assume_role")
    if extra.get("role_arn") and method != "assume_role":
        raise ConfigError(
            f"assume_role_method {method!r} is not supported; expected 'assume_role', or no role_arn and the role "
            "given to the machine or pod (boto3 finds it, web identities included)"
        )
    service = extra.get("service_config", {}).get("s3", {})
    keys = (
        (login, password) if login or password else (extra.get("aws_access_key_id"), extra.get("aws_secret_access_key"))
    )
    options = {
        "endpoint_url": service.get("endpoint_url", extra.get("endpoint_url")),
        "region_name": extra.get("region_name"),
        "aws_access_key_id": keys[0],
        "aws_secret_access_key": keys[1],
        "aws_session_token": extra.get("aws_session_token"),
        "role_arn": extra.get("role_arn"),
        "external_id": extra.get("assume_role_kwargs", {}).get("ExternalId", extra.get("external_id")),
        "profile_name": extra.get("profile_name"),
        "addressing_style": extra.get("config_kwargs", {}).get("s3", {}).get("addressing_style"),
        "verify": extra.get("verify"),
    }
    return {name: text(value) for name, value in options.items() if value not in (None, "")}


def _checked(options: dict[str, str], where: str) -> dict[str, str]:
    if not is_plain_address(options.get("endpoint_url") or "http://host"):
        # The message does not repeat the address: it may hold a secret.
        raise ConfigError(
            f"{where}: expected `endpoint_url` like http://host:port, without user, password, query and fragment"
        )
    try:
        S3Options.parse(options)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    return options

"""From the connections that an archive names, or the mappings it gives, to its endpoints."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from airflow.sdk import Connection
from airflow.sdk.log import mask_secret

from kafka_archiver.config import Archive
from kafka_archiver.errors import ConfigError
from kafka_archiver.job import Endpoints
from kafka_archiver.kafka.java import java_properties
from kafka_archiver.orchestration.lookup import Wanted, find
from kafka_archiver.properties import is_plain_address
from kafka_archiver.secrets import masked
from kafka_archiver.store.options import S3Options

# The archive's own business, or another kind of client's; a connection may be shared with consumers and producers.
_NOT_OURS = re.compile(
    r"group\..*|((enable|allow)\.)?auto\..*|isolation\.level|enable\.partition\.eof|partition\.assignment\.strategy"
    r"|session\.timeout\.ms|heartbeat\.interval\.ms|max\.poll\.interval\.ms|consume\.callback\..*"
    r"|(request\.required\.)?acks|enable\.(idempotence|gapless\.guarantee)|transaction.*|linger\.ms|batch\..*"
    r"|(compression|queue\.buffering|sticky\.partitioning)\..*|(delivery|message|request)\.timeout\.ms|partitioner"
    r"|(error|throttle|stats|log)_cb|on_(commit|delivery)|dr_(msg_)?cb|default\.topic\.config|plugin\.library\.paths"
)


def endpoints(archive: Archive) -> Endpoints:
    """Where the archive's brokers and store are, and who we are to them. What is secret in it is kept out of logs.

    :raises ConfigError: a connection is missing, of another type or incomplete, or not for the archive's reader.
    """
    return Endpoints(kafka=kafka_endpoint(archive), store=store_endpoint(archive))


def kafka_endpoint(archive: Archive) -> dict[str, str]:
    """The brokers' part of `endpoints`."""
    kafka = hidden(_kafka(archive.source.kafka))
    if archive.source.reader == "spark":
        # Before anything is planned, and not when Spark begins to read.
        java_properties(kafka)
    return kafka


def store_endpoint(archive: Archive) -> dict[str, str]:
    """The store's part of `endpoints`, for what has to do without Kafka."""
    return hidden(_store(archive.store.aws))


def registry_endpoint(archive: Archive) -> dict[str, str] | None:
    """Where the archive's schema registry is, in the words of Confluent's clients; None when it names none.

    :raises ConfigError: the connection is missing, of another type or incomplete.
    """
    source = archive.source.registry
    if source is None:
        return None
    if not isinstance(source, str):
        found = {name: _text(value) for name, value in source.items()}
    else:
        wanted = Wanted(source, "source.registry", ("http",))
        found = _registry(find(wanted), str(wanted))
    return hidden(found)


def _registry(connection: Connection, where: str) -> dict[str, str]:
    host = connection.host or ""
    address = urlsplit(host if "://" in host else f"{connection.schema or 'http'}://{host}")
    if not address.hostname:
        raise ConfigError(f"{where} has no host; expected one like https://registry.example.com")
    # A port of its own goes behind the host, before the path that the API may have.
    port = f":{connection.port}" if connection.port else ""
    found = {"url": address._replace(netloc=f"{address.netloc}{port}").geturl()}
    if connection.login or connection.password:
        found["basic.auth.user.info"] = f"{connection.login or ''}:{connection.password or ''}"
    return {**found, **{name: _text(value) for name, value in connection.extra_dejson.items()}}


def hidden(found: dict[str, str]) -> dict[str, str]:
    """The same properties. What is secret in them is kept out of logs from now on."""
    for secret in masked(found):
        mask_secret(secret)
        mask_secret(json.dumps(secret)[1:-1])
    return found


def _kafka(source: str | Mapping[str, Any]) -> dict[str, str]:
    if not isinstance(source, str):
        return kafka_properties(source, "the mapping in source.kafka")
    wanted = Wanted(source, "source.kafka", ("kafka",))
    return kafka_properties(find(wanted).extra_dejson, f"the extra of {wanted}")


def kafka_properties(given: Mapping[str, Any], where: str) -> dict[str, str]:
    """librdkafka's properties of a client, without those that only a consumer, a producer or Airflow's hook has.

    :param where: what to call `given` in messages.
    :raises ConfigError: there are no brokers, or a property that cannot be handed to the Spark job.
    """
    if "oauth_cb" in given:
        raise ConfigError(
            f"{where} has `oauth_cb`, a Python function, which cannot reach the brokers' other clients; expected "
            "`sasl.oauthbearer.method: oidc` with its client id, secret and token endpoint, or another mechanism"
        )
    properties = {name: _text(value) for name, value in given.items() if not _NOT_OURS.fullmatch(name)}
    brokers = properties.get("bootstrap.servers")
    if not brokers or "@" in brokers:
        found = "a user or a password in" if brokers else "no"
        raise ConfigError(
            f"{where} has {found} `bootstrap.servers`; expected the brokers, as in broker-1:9092,broker-2:9092"
        )
    return properties


def _store(source: str | Mapping[str, Any]) -> dict[str, str]:
    if not isinstance(source, str):
        return _checked({name: _text(value) for name, value in source.items()}, "the mapping in store.aws")
    wanted = Wanted(source, "store.aws", ("aws",))
    connection = find(wanted)
    return _checked(store_options(connection.login, connection.password, connection.extra_dejson), str(wanted))


def store_options(login: str | None, password: str | None, extra: Mapping[str, Any]) -> dict[str, str]:
    """An aws connection as options of the store; nothing given means boto3's own chain of credentials.

    :raises ConfigError: a way to assume a role that only Airflow's hook knows.
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
    return {name: _text(value) for name, value in options.items() if value not in (None, "")}


def _checked(options: dict[str, str], where: str) -> dict[str, str]:
    if not is_plain_address(options.get("endpoint_url") or "http://host"):
        # Not repeated: what is too much in it may be a secret.
        raise ConfigError(
            f"{where}: expected `endpoint_url` like http://host:port, without user, password, query and fragment"
        )
    try:
        S3Options.parse(options)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    return options


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

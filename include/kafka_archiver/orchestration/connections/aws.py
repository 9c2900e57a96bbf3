"""Options of S3 from an aws connection.

The amazon provider says what a connection means. The job's machines get what lets them renew their credentials: keys, a
profile, a role, a token's file, or nothing. The ways that only Airflow has (SAML, Google's identities, a session
factory) give temporary credentials, made here.
"""

import functools
import json
import logging
import os
from typing import TYPE_CHECKING, Any

from airflow.sdk import Connection
from airflow.sdk.configuration import conf

from kafka_archiver.config.properties import property_text
from kafka_archiver.messages.errors import ConfigError, TransientError, kind_in_words

if TYPE_CHECKING:
    # Imported late at runtime: they load boto3, and Airflow parses DAGs all day.
    from airflow.providers.amazon.aws.utils.connection_wrapper import AwsConnectionWrapper


def aws_options(connection: Connection, where: str) -> dict[str, str]:
    """Turn an aws connection into options of the store. Without credentials, boto3 uses its own chain.

    :param where: the connection in messages.
    :raises ConfigError: the provider cannot use the connection.
    :raises TransientError: the credentials that only Airflow can get were not given.
    """
    extra = connection.extra_dejson
    try:
        wrapper = _wrapper()(connection)
    except Exception as error:  # noqa: BLE001 - the provider raises anything; its text may repeat a secret
        raise ConfigError(
            f"{where}: the amazon provider cannot use it ({kind_in_words(error)}): {_why(extra)}"
        ) from None
    options = {
        "endpoint_url": wrapper.get_service_endpoint_url("s3"),
        "kms_endpoint_url": wrapper.get_service_config("kms").get("endpoint_url"),
        "region_name": wrapper.region_name,
        "addressing_style": extra.get("config_kwargs", {}).get("s3", {}).get("addressing_style"),
        "verify": wrapper.verify,
        **_credentials(connection, wrapper, where),
    }
    return {name: property_text(value) for name, value in options.items() if value not in (None, "")}


@functools.cache
def _wrapper() -> "type[AwsConnectionWrapper]":
    """Return the provider's class, without its log of where the credentials come from."""
    from airflow.providers.amazon.aws.utils.connection_wrapper import AwsConnectionWrapper

    class Quiet(AwsConnectionWrapper):
        log = logging.getLogger(__name__)  # type: ignore[assignment]

    Quiet.log.setLevel(logging.WARNING)
    return Quiet


def _credentials(connection: Connection, wrapper: "AwsConnectionWrapper", where: str) -> dict[str, Any]:
    extra: dict[str, Any] = wrapper.extra_config
    federation = extra.get("assume_role_with_web_identity_federation")
    method = wrapper.assume_role_method
    by_file = method == "assume_role_with_web_identity" and federation == "file"
    if conf.get("aws", "session_factory", fallback=None) or (method not in (None, "assume_role") and not by_file):
        return _temporary(wrapper, where)
    role = dict(wrapper.assume_role_kwargs)
    token = extra.get("assume_role_with_web_identity_token_file") or os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE")
    if by_file and not token:
        raise ConfigError(
            f"{where}: expected `assume_role_with_web_identity_token_file`, or AWS_WEB_IDENTITY_TOKEN_FILE in the "
            "environment: the file with the token, on each machine of the job"
        )
    return {
        # One of both alone is a mistake, which the provider does not see.
        "aws_access_key_id": wrapper.aws_access_key_id or connection.login,
        "aws_secret_access_key": wrapper.aws_secret_access_key or connection.password,
        "aws_session_token": wrapper.aws_session_token,
        "profile_name": wrapper.profile_name,
        "role_arn": wrapper.role_arn,
        "external_id": role.pop("ExternalId", extra.get("external_id")),
        "role_parameters": json.dumps(role) if role else None,
        "web_identity_token_file": token if by_file else None,
        "sts_endpoint_url": wrapper.role_arn and wrapper.get_service_endpoint_url("sts", sts_connection_assume=True),
    }


def _temporary(wrapper: "AwsConnectionWrapper", where: str) -> dict[str, Any]:
    """Let the provider get credentials now, which expire."""
    from airflow.providers.amazon.aws.hooks.base_aws import resolve_session_factory

    try:
        credentials = (
            resolve_session_factory()(conn=wrapper).create_session().get_credentials().get_frozen_credentials()
        )
    except Exception as error:  # noqa: BLE001 - the provider raises anything; its text may repeat a secret
        raise TransientError(
            f"{where}: the amazon provider got no credentials ({kind_in_words(error)}); expected that "
            f"{wrapper.assume_role_method or 'the session factory'} works in this Airflow, as `airflow connections "
            f"test {wrapper.conn_id}` shows"
        ) from None
    return {
        "aws_access_key_id": credentials.access_key,
        "aws_secret_access_key": credentials.secret_key,
        "aws_session_token": credentials.token,
    }


def _why(extra: dict[str, Any]) -> str:
    method = extra.get("assume_role_method", "assume_role")
    return f"assume_role_method {method!r} or another property of its extra is not one that the provider knows"

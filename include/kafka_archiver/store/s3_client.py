"""Makes a boto3 client from the options of a store."""

import functools
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import (
    AssumeRoleWithWebIdentityCredentialFetcher,
    DeferredRefreshableCredentials,
    FileWebIdentityTokenLoader,
    ReadOnlyCredentials,
    create_assume_role_refresher,
)
from botocore.exceptions import BotoCoreError
from botocore.loaders import Loader, create_loader

from kafka_archiver import __version__
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.store.options import S3Options
from kafka_archiver.store.s3_repeated import RepeatedRequests


@dataclass(frozen=True, slots=True)
class Timeouts:
    """In seconds. `read` is between two bytes: completing a large upload takes minutes, but sends bytes meanwhile."""

    connect: float = 5.0
    read: float = 60.0


@dataclass(slots=True)
class Connection:
    """A client that threads may share. `checksums`: the store has not refused additional checksums so far."""

    client: Any
    requests: RepeatedRequests
    checksums: bool = True


def connect(options: S3Options, timeouts: Timeouts) -> Connection:
    """The connection for these options, cached: a new client costs 50 ms of CPU.

    :raises ConfigError: an option cannot be used (no such profile, …).
    """
    # The key has the process id: a forked process must not share its parent's connections.
    return _connection(options, timeouts, os.getpid())


@functools.lru_cache(maxsize=8)
def _connection(options: S3Options, timeouts: Timeouts, _: int) -> Connection:
    config = Config(
        connect_timeout=timeouts.connect,
        read_timeout=timeouts.read,
        max_pool_connections=32,
        tcp_keepalive=True,
        # Botocore makes its own name anew, twice a request: a sixth of the request's CPU.
        user_agent=f"kafka-archiver/{__version__}",
        # `Backoff` retries instead.
        retries={"total_max_attempts": 1, "mode": "standard"},
        # We compute the checksums ourselves, once: a sixth of botocore's CPU.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"payload_signing_enabled": False, "addressing_style": options.addressing_style or "auto"},
    )
    try:
        source = session(options)
        client = source.client("s3", endpoint_url=options.endpoint_url, verify=_verify(options), config=config)
        return Connection(client, RepeatedRequests(client, partial(_credentials, source)))
    except (BotoCoreError, ValueError) as error:
        # Raised before any request: the text names a profile, region or endpoint, no secret.
        raise ConfigError(f"the store's connection cannot be used: {error}") from None


def _credentials(source: boto3.Session) -> ReadOnlyCredentials | None:
    credentials = source.get_credentials()
    return credentials and credentials.get_frozen_credentials()


def session(options: S3Options) -> boto3.Session:
    """boto3's session with these credentials, which renew themselves where they can.

    :raises ConfigError: an option cannot be used.
    """
    source = botocore.session.Session(profile=options.profile_name)
    source.register_component("data_loader", _loader(source.get_config_variable("data_path")))
    # By default botocore gives up after one second, and a busy metadata service answers later.
    source.set_config_variable("metadata_service_num_attempts", 3)
    if options.region_name:
        source.set_config_variable("region", options.region_name)
    if options.aws_access_key_id:
        source.set_credentials(options.aws_access_key_id, options.aws_secret_access_key, options.aws_session_token)
    if options.role_arn:
        # boto3 has no public way to set credentials that renew themselves; Airflow uses the same private field.
        source._credentials = (
            _by_token(source, options) if options.web_identity_token_file else _by_role(source, options)
        )
    return boto3.Session(botocore_session=source)


@functools.cache
def _loader(data_path: str | None) -> Loader:
    """Botocore's models, which all sessions share: reading them takes nine tenths of the CPU of a new client."""
    return create_loader(data_path)


def load_models() -> None:
    """Read the models of S3 now, for processes that are forked later. Sends no request."""
    # With a key, so that botocore does not look for one.
    options = S3Options(aws_access_key_id="any", aws_secret_access_key="any", region_name="us-east-1")
    session(options).client("s3")


def _by_role(source: botocore.session.Session, options: S3Options) -> DeferredRefreshableCredentials:
    """Credentials of a role, which renew themselves with the session's own credentials."""
    service = source.create_client("sts", verify=_verify(options), endpoint_url=options.sts_endpoint_url)
    refresh = create_assume_role_refresher(service, options.assume_role)
    return DeferredRefreshableCredentials(refresh, method="assume-role")


def _by_token(source: botocore.session.Session, options: S3Options) -> DeferredRefreshableCredentials:
    """Credentials of a role, which renew themselves with the token that is in a file then."""

    def service(name: str, **settings: Any) -> Any:
        return source.create_client(name, verify=_verify(options), endpoint_url=options.sts_endpoint_url, **settings)

    fetcher = AssumeRoleWithWebIdentityCredentialFetcher(
        client_creator=service,
        web_identity_token_loader=FileWebIdentityTokenLoader(options.web_identity_token_file),
        role_arn=options.role_arn,
        extra_args={name: value for name, value in options.assume_role.items() if name != "RoleArn"},
    )
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, method="assume-role-with-web-identity")


def _verify(options: S3Options) -> bool | str | None:
    if options.verify is None:
        return None
    known = {"true": True, "false": False}.get(options.verify.lower())
    if known is None and not Path(options.verify).exists():
        raise ConfigError(
            f"store option verify: expected true, false or the path of a bundle of certificates on this machine, "
            f"found {options.verify!r}"
        )
    return options.verify if known is None else known

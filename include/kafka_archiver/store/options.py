"""The options of a store, from an Airflow connection and the YAML. Pure."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self
from urllib.parse import urlsplit

from kafka_archiver.messages.errors import ConfigError

ADDRESSING_STYLES = ("auto", "path", "virtual")


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options:
    """The address of the S3 server, the credentials, and what requests have besides. All are texts.

    boto3's default chain provides missing credentials. `verify`: `true`, `false`, or the path of a bundle of trusted
    certificates. `role_parameters`: JSON of further parameters of AssumeRole. `web_identity_token_file`: instead of
    keys, this file's token assumes the role. `sse`: S3's name of the encryption (`AES256`, `aws:kms`).
    `sse_kms_context`: JSON. `sse_customer`: `true` for SSE-C, whose key `sse_customer_secret` is, 32 bytes in base64.
    `tags`: as in a URL's query.
    """

    endpoint_url: str | None = None
    region_name: str | None = None
    aws_access_key_id: str | None = field(default=None, repr=False)
    aws_secret_access_key: str | None = field(default=None, repr=False)
    aws_session_token: str | None = field(default=None, repr=False)
    role_arn: str | None = None
    external_id: str | None = field(default=None, repr=False)
    role_parameters: str | None = field(default=None, repr=False)
    web_identity_token_file: str | None = None
    sts_endpoint_url: str | None = None
    kms_endpoint_url: str | None = None
    profile_name: str | None = None
    addressing_style: str | None = None
    verify: str | None = None
    sse: str | None = None
    sse_kms_key_id: str | None = None
    sse_kms_context: str | None = None
    sse_bucket_key: str | None = None
    sse_customer: str | None = None
    sse_customer_secret: str | None = field(default=None, repr=False)
    storage_class: str | None = None
    tags: str | None = None
    acl: str | None = None
    requester_pays: str | None = None
    bucket_owner: str | None = None

    @property
    def customer_key(self) -> bytes:
        """The key of SSE-C; empty if there is none."""
        return base64.b64decode(self.sse_customer_secret or "")

    @property
    def assume_role(self) -> dict[str, Any]:
        """The parameters of AssumeRole."""
        external = {"ExternalId": self.external_id} if self.external_id else {}
        further = json.loads(self.role_parameters or "{}")
        return {"RoleSessionName": "kafka-archiver", **external, **further, "RoleArn": self.role_arn}

    @property
    def has_md5_etags(self) -> bool:
        """Return True if ETags may be MD5s of the bytes: with keys of KMS or of the customer they are not."""
        return self.sse in (None, "AES256") and not self.sse_customer_secret

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Check the options; an empty value counts as missing.

        :raises ConfigError: an option is unknown or wrong. The message shows no secret.
        """
        known = cls.names()
        if unknown := sorted(set(options) - set(known)):
            raise ConfigError(f"unknown store option {', '.join(unknown)}; expected any of {', '.join(known)}")
        parsed = cls(**{name: value for name, value in options.items() if value})
        parsed._check()
        return parsed

    def _check(self) -> None:
        for name in ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "external_id"):
            value = getattr(self, name)
            # Checked here: the HTTP library would repeat the whole header in its error message.
            if value and any(c.isspace() or not c.isprintable() for c in value):
                raise ConfigError(f"store option {name} contains white space, perhaps a line break pasted with it")
        if bool(self.aws_access_key_id) != bool(self.aws_secret_access_key):
            raise ConfigError("store options aws_access_key_id and aws_secret_access_key: expected both or neither")
        if self.aws_session_token and not self.aws_access_key_id:
            raise ConfigError("store option aws_session_token: expected aws_access_key_id with it")
        for name in ("external_id", "role_parameters", "web_identity_token_file"):
            if getattr(self, name) and not self.role_arn:
                raise ConfigError(f"store option {name}: expected role_arn with it")
        for name in ("role_parameters", "sse_kms_context"):
            if not _is_object(getattr(self, name) or "{}"):
                raise ConfigError(f"store option {name}: expected JSON of a mapping")
        if bool(self.sse_customer) != bool(self.sse_customer_secret):
            raise ConfigError(
                "store options sse_customer and sse_customer_secret: expected both or neither. With `store.encryption: "
                "{sse-c: …}`, the endpoints in a Secret of Kubernetes need sse_customer_secret in `store`, too"
            )
        if self.sse_customer_secret is not None and not _is_key(self.sse_customer_secret):
            raise ConfigError(
                "store option sse_customer_secret: expected 32 bytes in base64, as from `openssl rand -base64 32`"
            )
        if self.addressing_style and self.addressing_style not in ADDRESSING_STYLES:
            raise ConfigError(
                f"store option addressing_style: expected {', '.join(ADDRESSING_STYLES)}, "
                f"found {self.addressing_style!r}"
            )
        for name in ("endpoint_url", "sts_endpoint_url", "kms_endpoint_url"):
            if url := getattr(self, name):
                _check_address(name, url)


def _check_address(name: str, url: str) -> None:
    endpoint = urlsplit(url)
    if "@" in endpoint.netloc:
        raise ConfigError(
            f"store option {name} holds credentials; give them as aws_access_key_id and aws_secret_access_key"
        )
    if endpoint.scheme not in ("http", "https") or not endpoint.hostname:
        raise ConfigError(f"store option {name}: expected http://host:port or https://host:port, found {url!r}")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == 32
    except binascii.Error:
        return False

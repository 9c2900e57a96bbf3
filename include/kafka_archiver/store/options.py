"""The options of a store, from an Airflow connection. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Self
from urllib.parse import urlsplit

from kafka_archiver.errors import ConfigError

ADDRESSING_STYLES = ("auto", "path", "virtual")


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options:
    """The address of the S3 server and the credentials. boto3's default chain provides missing options.

    `verify`: `true`, `false`, or the path of a bundle of trusted certificates.
    """

    endpoint_url: str | None = None
    region_name: str | None = None
    aws_access_key_id: str | None = field(default=None, repr=False)
    aws_secret_access_key: str | None = field(default=None, repr=False)
    aws_session_token: str | None = field(default=None, repr=False)
    role_arn: str | None = None
    external_id: str | None = field(default=None, repr=False)
    profile_name: str | None = None
    addressing_style: str | None = None
    verify: str | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Check the options; an empty value counts as missing.

        :raises ConfigError: an option is unknown or wrong. The message shows no secret.
        """
        known = [f.name for f in fields(cls)]
        if unknown := sorted(set(options) - set(known)):
            raise ConfigError(f"unknown store option {', '.join(unknown)}; expected any of {', '.join(known)}")
        given = cls(**{name: value for name, value in options.items() if value})
        given._check()
        return given

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
        if self.external_id and not self.role_arn:
            raise ConfigError("store option external_id: expected role_arn with it")
        if self.addressing_style and self.addressing_style not in ADDRESSING_STYLES:
            raise ConfigError(
                f"store option addressing_style: expected {', '.join(ADDRESSING_STYLES)}, "
                f"found {self.addressing_style!r}"
            )
        if self.endpoint_url:
            endpoint = urlsplit(self.endpoint_url)
            if "@" in endpoint.netloc:
                raise ConfigError(
                    "store option endpoint_url holds credentials; "
                    "give them as aws_access_key_id and aws_secret_access_key"
                )
            if endpoint.scheme not in ("http", "https") or not endpoint.hostname:
                raise ConfigError(
                    f"store option endpoint_url: expected http://host:port or https://host:port, "
                    f"found {self.endpoint_url!r}"
                )

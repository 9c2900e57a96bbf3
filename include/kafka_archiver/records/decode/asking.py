"""Requests to a schema registry: settings, timeouts, and errors that say whether a retry may help.

Only this module imports the HTTP client.
"""

import ssl
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from kafka_archiver.messages.errors import ArchiverError, ConfigError, PermanentError, TransientError
from kafka_archiver.messages.foreign_text import foreign

TIMEOUT_SECONDS = 10.0
_PROPERTIES = (
    "url", "basic.auth.user.info", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location",
    "ssl.key.password",
)  # fmt: skip
Answer = TypeVar("Answer")


class Server:
    """The HTTP server of a registry. `url`: the base URL of its API, without credentials."""

    def __init__(self, url: str, client: httpx.Client) -> None:
        self.url = url
        self._client = client

    @classmethod
    def of(cls, properties: Mapping[str, str], timeout: float = TIMEOUT_SECONDS) -> "Server":
        """Create from properties with the names of Confluent's clients. Sends no request yet. `timeout`: seconds.

        :raises ConfigError: a property is missing, wrong or unknown.
        """
        if unknown := sorted(set(properties) - set(_PROPERTIES)):
            raise ConfigError(f"source.registry: expected {', '.join(_PROPERTIES)}; found {', '.join(unknown)}")
        url = properties.get("url", "").rstrip("/")
        _require_plain(url)
        user, colon, password = properties.get("basic.auth.user.info", "").partition(":")
        if user and not colon:
            raise ConfigError("source.registry: `basic.auth.user.info` has no colon; expected user:password")
        auth = httpx.BasicAuth(user, password) if colon else None
        return cls(url, httpx.Client(auth=auth, timeout=timeout, verify=_trust(properties)))

    def get(self, path: str, kind: type[Answer], *missing: int) -> Answer | None:
        """The answer; None if the resource does not exist.

        :param missing: the registry's error codes for a missing resource.
        """
        try:
            response = self._client.get(f"{self.url}/{path}", headers={"Accept": "application/json"})
        except httpx.TransportError as error:
            raise self._unanswered(error) from error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ConfigError(f"source.registry: {self.url} is not a valid URL: {error}") from error
        try:
            answer = response.json()
        except (ValueError, RecursionError):
            answer = None
        if response.is_success and isinstance(answer, dict | list):
            try:
                return TypeAdapter(kind).validate_python(answer)
            except ValidationError as error:
                raise self._strange(_fault(error)) from None
        if response.status_code == 404 and isinstance(answer, dict) and answer.get("error_code") in missing:
            return None
        raise self._refused(response.status_code)

    def _refused(self, status: int) -> ArchiverError:
        if status in (401, 403):
            return PermanentError(
                f"the schema registry at {self.url} refused the credentials (HTTP {status}); correct login and "
                "password of the connection, or `basic.auth.user.info`, in source.registry"
                if self._client.auth
                else f"the schema registry at {self.url} needs credentials (HTTP {status}); set login and password of "
                "the connection, or `basic.auth.user.info`, in source.registry"
            )
        if status == 429 or status >= 500:
            return TransientError(f"the schema registry at {self.url} is not available at the moment (HTTP {status})")
        return self._strange(f"HTTP {status}")

    def _strange(self, answer: str) -> PermanentError:
        return PermanentError(
            f"the server at {self.url} is no schema registry ({answer}); expected the base URL of Confluent's "
            "API, for example https://registry:8081 or https://apicurio/apis/ccompat/v7"
        )

    def _unanswered(self, error: httpx.TransportError) -> ArchiverError:
        if tls := _tls_error(error):
            return PermanentError(
                f"TLS with the schema registry at {self.url} failed ({foreign(str(tls.reason or tls))}); set its "
                "certificate authority in `ssl.ca.location`, or correct the URL in source.registry"
            )
        if isinstance(error, httpx.RemoteProtocolError | httpx.UnsupportedProtocol):
            return self._strange("the answer is not HTTP, or it is HTTPS and the URL has http")
        late = f" within {self._client.timeout.read:.0f} s" if isinstance(error, httpx.TimeoutException) else ""
        return TransientError(
            f"no answer from the schema registry at {self.url}{late}; check that it runs and that this machine "
            f"reaches it ({type(error).__name__}: {foreign(str(error))})"
        )


def _fault(error: ValidationError) -> str:
    first = error.errors()[0]
    where, message = foreign(".".join(map(str, first["loc"]))), foreign(first["msg"])
    return f"its answer has no `{where}`" if first["type"] == "missing" else f"`{where}` of its answer: {message}"


def _require_plain(url: str) -> None:
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("http", "https") and parts.hostname and not parts.query and parts.port != 0
    except ValueError:
        right = False
    # The messages do not show the URL: it may have a password.
    if not right or "," in url:
        raise ConfigError("source.registry: `url` is missing or not valid; expected one like https://registry:8081")
    if "@" in parts.netloc:
        raise ConfigError("source.registry: the `url` has credentials; put them in `basic.auth.user.info`")


def _trust(properties: Mapping[str, str]) -> ssl.SSLContext | bool:
    authority, certificate = properties.get("ssl.ca.location"), properties.get("ssl.certificate.location")
    if not authority and not certificate:
        return True
    try:
        context = ssl.create_default_context(cafile=authority)
        if certificate:
            key, password = properties.get("ssl.key.location"), properties.get("ssl.key.password", "")
            # With a password argument, ssl never prompts for it on a terminal.
            context.load_cert_chain(certificate, key, password)
    except OSError as error:
        raise ConfigError(
            "source.registry: `ssl.ca.location`, `ssl.certificate.location` or `ssl.key.location` cannot be read as "
            f"PEM: {error}"
        ) from error
    return context


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error

"""Requests to a schema registry: settings, timeouts, and errors that say whether a retry may help.

Only this module imports the HTTP client.
"""

import ssl
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from kafka_archiver.messages.errors import ArchiverError, ConfigError, PermanentError, TransientError, kind_in_words
from kafka_archiver.messages.foreign_text import foreign

TIMEOUT_SECONDS = 10.0
NO_CONTENT, NOT_FOUND = 204, 404
# Answers that say what is wrong with the request, and not with the server: 405 and 501 if it does not know it.
_REFUSALS = frozenset({NOT_FOUND, 405, 409, 422, 501})
# The key of the YAML that names an archive's registry.
SETTING = "source.registry"
_PROPERTIES = (
    "url", "basic.auth.user.info", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location",
    "ssl.key.password",
)  # fmt: skip
Answer = TypeVar("Answer")


class RefusedError(PermanentError):
    """The registry refuses a change. `code`: its error code."""

    def __init__(self, url: str, request: str, code: int, reason: str) -> None:
        super().__init__(f"the schema registry at {url} refuses {request}: {foreign(reason)} ({code})")
        self.code = code


class Server:
    """The HTTP server of a registry.

    `url`: the base URL of its API, without credentials. `setting`: what names it, for messages.
    """

    def __init__(self, url: str, client: httpx.Client, setting: str = SETTING) -> None:
        self.url = url
        self._client = client
        self._setting = setting

    @classmethod
    def of(cls, properties: Mapping[str, str], timeout: float = TIMEOUT_SECONDS, setting: str = SETTING) -> "Server":
        """Create from properties with the names of Confluent's clients. Sends no request yet. `timeout`: seconds.

        :raises ConfigError: a property is missing, wrong or unknown.
        """
        if unknown := sorted(set(properties) - set(_PROPERTIES)):
            raise ConfigError(f"{setting}: expected {', '.join(_PROPERTIES)}; found {', '.join(unknown)}")
        url = properties.get("url", "").rstrip("/")
        _require_plain(url, setting)
        user, colon, password = properties.get("basic.auth.user.info", "").partition(":")
        if user and not colon:
            raise ConfigError(f"{setting}: `basic.auth.user.info` has no colon; expected user:password")
        auth = httpx.BasicAuth(user, password) if colon else None
        return cls(url, httpx.Client(auth=auth, timeout=timeout, verify=_trust(properties, setting)), setting)

    def get(self, path: str, kind: type[Answer], *missing: int) -> Answer | None:
        """The answer; None if the resource does not exist.

        :param missing: the registry's error codes for a missing resource.
        """
        response, answer = self._exchange("GET", path)
        return self._read(response, answer, kind, missing)

    def send(self, method: str, path: str, kind: type[Answer], body: Any = None, *missing: int) -> Answer | None:
        """Change something. Returns as `get`.

        :raises RefusedError: the registry refuses the change.
        """
        response, answer = self._exchange(method, path, body)
        code = answer.get("error_code") if isinstance(answer, dict) else None
        if response.status_code == NO_CONTENT:
            return None
        if response.status_code in _REFUSALS and not (response.status_code == NOT_FOUND and code in missing):
            message = str(answer.get("message", "")) if isinstance(answer, dict) else ""
            raise RefusedError(self.url, f"{method} {path}", int(code or response.status_code), message)
        return self._read(response, answer, kind, missing)

    def _exchange(self, method: str, path: str, body: Any = None) -> tuple[httpx.Response, Any]:
        try:
            response = self._client.request(
                method, f"{self.url}/{path}", headers={"Accept": "application/json"}, json=body
            )
        except httpx.TransportError as error:
            raise self._unanswered(error) from error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ConfigError(f"{self._setting}: {self.url} is not a valid URL: {error}") from error
        try:
            return response, response.json()
        except (ValueError, RecursionError):
            return response, None

    def _read(self, response: httpx.Response, answer: Any, kind: type[Answer], missing: Sequence[int]) -> Answer | None:
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
                f"password of the connection, or `basic.auth.user.info`, in {self._setting}"
                if self._client.auth
                else f"the schema registry at {self.url} needs credentials (HTTP {status}); set login and password of "
                f"the connection, or `basic.auth.user.info`, in {self._setting}"
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
                f"certificate authority in `ssl.ca.location`, or correct the URL in {self._setting}"
            )
        if isinstance(error, httpx.RemoteProtocolError | httpx.UnsupportedProtocol):
            return self._strange("the answer is not HTTP, or it is HTTPS and the URL has http")
        late = f" within {self._client.timeout.read:.0f} s" if isinstance(error, httpx.TimeoutException) else ""
        return TransientError(
            f"no answer from the schema registry at {self.url}{late}; check that it runs and that this machine "
            f"reaches it ({kind_in_words(error)}: {foreign(str(error))})"
        )


def _fault(error: ValidationError) -> str:
    first = error.errors()[0]
    where, message = foreign(".".join(map(str, first["loc"]))), foreign(first["msg"])
    return f"its answer has no `{where}`" if first["type"] == "missing" else f"`{where}` of its answer: {message}"


def _require_plain(url: str, setting: str) -> None:
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("http", "https") and parts.hostname and not parts.query and parts.port != 0
    except ValueError:
        right = False
    # The messages do not show the URL: it may have a password.
    if not right or "," in url:
        raise ConfigError(f"{setting}: `url` is missing or not valid; expected one like https://registry:8081")
    if "@" in parts.netloc:
        raise ConfigError(f"{setting}: the `url` has credentials; put them in `basic.auth.user.info`")


def _trust(properties: Mapping[str, str], setting: str) -> ssl.SSLContext | bool:
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
            f"{setting}: `ssl.ca.location`, `ssl.certificate.location` or `ssl.key.location` cannot be read as "
            f"PEM: {error}"
        ) from error
    return context


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error

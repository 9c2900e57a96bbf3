"""Sends the requests of uploads as botocore has sent the first of their kind, with other values and a new signature.

Botocore makes each request anew, from models and with handlers, for as much CPU as 2,000 records cost. A request that
it has sent is the form of the next: it gives the URL, the headers and the scope of the signature. A form is used only
if it gives, from the same values, the very request that botocore has sent, with its signature. After an answer that is
no success, and after an error, botocore sends the next one.
"""

import hmac
import re
from collections.abc import Callable, Hashable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from threading import local
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urlsplit
from xml.etree.ElementTree import Element, SubElement, tostring

from botocore.awsrequest import AWSPreparedRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.endpoint import convert_to_response_dict
from botocore.parsers import create_parser

from kafka_archiver.store.s3_errors import FAILURES

# Larger bodies cost more than their requests, and botocore asks the store before it sends them.
MOST = 1 << 20
_ALGORITHM, _UNSIGNED = "AWS4-HMAC-SHA256", "UNSIGNED-PAYLOAD"
_SIGNED = re.compile(rf"{_ALGORITHM} Credential=[^,]*/[0-9]{{8}}/([^/,]+)/([^/,]+)/aws4_request, ")
_XML = "http://s3.amazonaws.com/doc/2006-03-01/"
# The codes of answers that lead to another region or address.
_ELSEWHERE = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}
# The headers of values.
_HEADERS = {"ContentMD5": "Content-MD5", "ChecksumCRC32": "x-amz-checksum-crc32"}
# What a form does not keep: headers that each request has anew, or that count botocore's own tries.
_TRIES = {"amz-sdk-invocation-id", "amz-sdk-request"}
_NOT_KEPT = {
    *("authorization", "x-amz-date", "x-amz-security-token", "content-length", "expect"),
    *_TRIES,
    *map(str.lower, _HEADERS.values()),
}
_NOT_SIGNED = {"authorization", "content-length", "expect", "user-agent", *_TRIES}


class _Operation(NamedTuple):
    """`values`: the parameters that differ from request to request. `confirms`: what each success has."""

    values: frozenset[str]
    query: Callable[[Mapping[str, Any]], str]
    confirms: str


_OPERATIONS = {
    "create_multipart_upload": _Operation(frozenset({"Key"}), lambda _: "uploads", "UploadId"),
    "upload_part": _Operation(
        frozenset({"Key", "UploadId", "PartNumber", "Body", *_HEADERS}),
        lambda values: f"partNumber={values['PartNumber']}&{_upload(values)}",
        "ETag",
    ),
    "complete_multipart_upload": _Operation(
        frozenset({"Key", "UploadId", "MultipartUpload", *_HEADERS}), lambda values: _upload(values), "ETag"
    ),
}


def _upload(values: Mapping[str, Any]) -> str:
    return f"uploadId={quote(values['UploadId'], safe='')}"


class Scope(NamedTuple):
    """Where a signature is valid."""

    region: str
    service: str


class _Form(NamedTuple):
    """The requests of one kind. `place`: the URL before the key. `headers`: those that do not depend on values."""

    method: str
    place: str
    headers: Mapping[str, str]
    scope: Scope

    def request(
        self, operation: _Operation, values: Mapping[str, Any], credentials: ReadOnlyCredentials, at: str
    ) -> AWSPreparedRequest:
        """Return a request that is signed at this time."""
        url = f"{self.place}{quote(values['Key'], safe='/~')}?{operation.query(values)}"
        body = _body(values)
        headers = {**self.headers, **{name: values[value] for value, name in _HEADERS.items() if value in values}}
        headers |= {"X-Amz-Date": at, "Content-Length": str(len(body))}
        if credentials.token:
            headers["X-Amz-Security-Token"] = credentials.token
        headers["Authorization"] = authorization(self.method, url, headers, credentials, self.scope)
        # http.client would send other characters as Latin-1.
        encoded = {name: value if value.isascii() else value.encode() for name, value in headers.items()}
        return AWSPreparedRequest(self.method, url, encoded, body, False)


class RepeatedRequests:
    """Sends a client's requests. Threads may share it.

    :param client: boto3's, of S3.
    :param credentials: returns the client's credentials as they are at this moment; None if it has none.
    """

    def __init__(self, client: Any, credentials: Callable[[], ReadOnlyCredentials | None]) -> None:
        self._client, self._credentials = client, credentials
        # Not public: without it, botocore sends all requests.
        self._session: Any = getattr(getattr(client, "_endpoint", None), "http_session", None)
        self._parser = create_parser("rest-xml")
        # A kind has the customer's key, which a KeyError would show.
        self._forms: dict[Hashable, _Form | Literal[False]] = {}
        self._first = local()
        client.meta.events.register("before-send.s3", self._keep)

    def ask(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Send the request of a method of the client. Returns the same answer, and raises the same errors."""
        operation = _OPERATIONS.get(method)
        is_usual = operation is not None and parameters.get("Key") and _is_small(parameters.get("Body", b""))
        if operation is None or self._session is None or not is_usual:
            return self._by_botocore(method, parameters)
        kind = method, frozenset((name, name in operation.values or value) for name, value in parameters.items())
        form = self._forms.get(kind)
        if form is None:
            answer, sent = self._watched(method, parameters)
            self._forms[kind] = sent is not None and self._form(operation, parameters, sent)
            return answer
        if form:
            try:
                repeated = self._repeat(method, operation, form, parameters)
            except Exception:
                # Botocore sends the next one: it waits for the store's answer before it sends the body.
                self._forms.pop(kind, None)
                raise
            status = repeated.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if 200 <= status < 300 and repeated.get(operation.confirms):
                return repeated
            # Botocore sends the next one: it follows redirections.
            self._forms.pop(kind, None)
            code = repeated.get("Error", {}).get("Code")
            if status >= 400 and code not in _ELSEWHERE:
                name = self._client.meta.method_to_api_mapping[method]
                raise self._client.exceptions.from_code(code)(repeated, name)
        return self._by_botocore(method, parameters)

    def _by_botocore(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = getattr(self._client, method)(**parameters)
        return answer

    def _watched(self, method: str, parameters: Mapping[str, Any]) -> tuple[dict[str, Any], AWSPreparedRequest | None]:
        """Return botocore's answer, and the request that it has sent for it."""
        self._first.request = None
        try:
            return self._by_botocore(method, parameters), self._first.request
        finally:
            del self._first.request

    def _keep(self, request: AWSPreparedRequest, **_: object) -> None:
        if hasattr(self._first, "request"):
            self._first.request = request

    def _form(
        self, operation: _Operation, values: Mapping[str, Any], sent: AWSPreparedRequest
    ) -> "_Form | Literal[False]":
        """Return the form of a request; False if it would not give the same request from these values."""
        headers = {name: _text(value) for name, value in sent.headers.items()}
        signed = _SIGNED.match(headers.get("Authorization", ""))
        try:
            credentials = self._credentials()
        except FAILURES:
            # The store has done it: its answer counts.
            return False
        if credentials is None or signed is None or headers.get("X-Amz-Content-SHA256") != _UNSIGNED:
            return False
        place = sent.url.partition("?")[0].removesuffix(quote(values["Key"], safe="/~"))
        kept = {name: value for name, value in headers.items() if name.lower() not in _NOT_KEPT}
        form = _Form(sent.method, place, kept, Scope(*signed.groups()))
        again = form.request(operation, values, credentials, headers["X-Amz-Date"])
        same = again.headers["Authorization"] == headers["Authorization"] and _parts(again.url) == _parts(sent.url)
        return form if same and ("Body" in values or again.body == (sent.body or b"")) else False

    def _repeat(self, method: str, operation: _Operation, form: _Form, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer, which may be an error; nothing without credentials."""
        credentials = self._credentials()
        if credentials is None:
            return {}
        request = form.request(operation, values, credentials, f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
        name, events = self._client.meta.method_to_api_mapping[method], self._client.meta.events
        model = self._client.meta.service_model.operation_model(name)
        answer = self._session.send(request)
        response = convert_to_response_dict(answer, model)
        # An error in a success becomes an error.
        noted = {"operation_model": model, "response_dict": response, "customized_response_dict": {}}
        events.emit(f"before-parse.s3.{name}", **noted)
        parsed: dict[str, Any] = self._parser.parse(response, model.output_shape)
        return parsed


def authorization(
    method: str, url: str, headers: Mapping[str, str], credentials: ReadOnlyCredentials, scope: Scope
) -> str:
    """Return the header of this name: AWS's signature, version 4, without the body."""
    parts = urlsplit(url)
    query = "&".join(pair if "=" in pair else f"{pair}=" for pair in _parts(url)[1])
    by_name = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    signed = {name: value for name, value in by_name.items() if name not in _NOT_SIGNED}
    signed["host"] = parts.netloc.removesuffix({"http": ":80", "https": ":443"}[parts.scheme])
    names = sorted(signed)
    lines = [method, parts.path, query, *(f"{name}:{signed[name]}" for name in names)]
    canonical = "\n".join([*lines, "", ";".join(names), _UNSIGNED])
    at = by_name["x-amz-date"]
    steps = (at[:8], scope.region, scope.service, "aws4_request")
    key = f"AWS4{credentials.secret_key}".encode()
    for step in steps:
        key = hmac.digest(key, step.encode(), sha256)
    text = "\n".join([_ALGORITHM, at, "/".join(steps), sha256(canonical.encode()).hexdigest()])
    place, signature = "/".join([credentials.access_key, *steps]), hmac.digest(key, text.encode(), sha256).hex()
    return f"{_ALGORITHM} Credential={place}, SignedHeaders={';'.join(names)}, Signature={signature}"


def _parts(url: str) -> tuple[str, list[str]]:
    """Return a URL without its query, and the query's parts in order."""
    place, _, query = url.partition("?")
    return place, sorted(query.split("&"))


def _body(values: Mapping[str, Any]) -> bytes:
    if "MultipartUpload" not in values:
        body: bytes = values.get("Body", b"")
        return body
    upload = Element("CompleteMultipartUpload", xmlns=_XML)
    for part in values["MultipartUpload"]["Parts"]:
        fields = SubElement(upload, "Part")
        for name, value in part.items():
            SubElement(fields, name).text = str(value)
    xml: bytes = tostring(upload, "utf-8")
    return xml


def _is_small(body: object) -> bool:
    return isinstance(body, bytes) and len(body) <= MOST


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value

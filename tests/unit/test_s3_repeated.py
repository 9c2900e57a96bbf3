"""Repeated requests: each is the one that botocore would send; what is no success goes back to botocore."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import boto3
import pytest
from botocore import UNSIGNED
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ClientError, ConnectionClosedError, CredentialRetrievalError
from hypothesis import given, settings
from hypothesis import strategies as st
from urllib3 import HTTPHeaderDict

from kafka_archiver.store.s3_repeated import MOST, RepeatedRequests

pytestmark = pytest.mark.unit

ANSWER = b"<Result><UploadId>an-id</UploadId><ETag>&quot;an etag&quot;</ETag></Result>"
# Headers of botocore's own tries, and of the wait before a body.
OF_BOTOCORE = {"amz-sdk-invocation-id", "amz-sdk-request", "expect"}
CREATE = {"Bucket": "archive", "Key": "a"}
FIRST_PART = {**CREATE, "UploadId": "u", "PartNumber": 1, "Body": b"1"}


class Body:
    """The body of an answer."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def stream(self) -> list[bytes]:
        return [self._data]


class Server:
    """Answers in place of HTTP, and keeps the requests."""

    def __init__(self) -> None:
        self.sent: list[AWSPreparedRequest] = []
        self.answers: list[tuple[int, bytes]] = []

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        self.sent.append(request)
        status, body = self.answers.pop(0) if self.answers else (200, ANSWER)
        return AWSResponse(
            request.url, status, HTTPHeaderDict({"ETag": '"an etag"'} if status == 200 else {}), Body(body)
        )

    def by_botocore(self) -> list[bool]:
        return ["amz-sdk-request" in request.headers for request in self.sent]


def client(server: Server, token: str | None = None, endpoint: str = "http://host:9000", **config: Any) -> Any:
    of_s3 = {"payload_signing_enabled": False, "addressing_style": config.pop("addressing_style", "path")}
    settings = Config(
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        retries={"total_max_attempts": 1, "mode": "standard"},
        s3=of_s3,
        **config,
    )
    keys = {"aws_access_key_id": "AKID", "aws_secret_access_key": "secret", "aws_session_token": token}
    s3_client = boto3.Session(region_name="eu-west-1", **keys).client("s3", endpoint_url=endpoint, config=settings)
    s3_client._endpoint.http_session = server
    return s3_client


def requests(s3_client: Any, token: str | None = None) -> RepeatedRequests:
    return RepeatedRequests(s3_client, lambda: ReadOnlyCredentials("AKID", "secret", token))


def content(request: AWSPreparedRequest) -> tuple[object, ...]:
    """All of a request but its time and signature, and what botocore alone adds."""
    # http.client sends text as Latin-1.
    sent = {name.lower(): v if isinstance(v, bytes) else v.encode("latin-1") for name, v in request.headers.items()}
    body = request.body.getvalue() if hasattr(request.body, "getvalue") else request.body or b""
    place, _, query = request.url.partition("?")
    return (
        request.method,
        place,
        sorted(query.split("&")),
        body,
        {name: value for name, value in sent.items() if name not in OF_BOTOCORE},
    )


PART = st.fixed_dictionaries({"PartNumber": st.integers(1, 10_000), "ETag": st.text("a\"&<>'é", max_size=4)})
KEYS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
VALUES = {
    "create_multipart_upload": st.fixed_dictionaries({"Key": KEYS}),
    "upload_part": st.fixed_dictionaries(
        {
            "Key": KEYS,
            "UploadId": st.text("aZ0-_.~+/=%", min_size=1, max_size=12),
            "PartNumber": st.integers(1, 10_000),
            "Body": st.binary(max_size=50),
            "ContentMD5": st.just("MDEyMzQ1Njc4OWFiY2RlZg=="),
        }
    ),
    "complete_multipart_upload": st.fixed_dictionaries(
        {
            "Key": KEYS,
            "UploadId": st.text("aZ0-_.~+/=%", min_size=1, max_size=12),
            "MultipartUpload": st.fixed_dictionaries({"Parts": st.lists(PART, min_size=1, max_size=3)}),
            "ChecksumCRC32": st.just("AAAAAA=="),
        }
    ),
}
FIXED: Mapping[str, Mapping[str, str]] = {
    "create_multipart_upload": {"ChecksumAlgorithm": "CRC32", "Tagging": "a=b&c=ä", "ServerSideEncryption": "aws:kms"},
    "upload_part": {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "k" * 32, "RequestPayer": "requester"},
    "complete_multipart_upload": {"ChecksumType": "FULL_OBJECT", "ExpectedBucketOwner": "123456789012"},
}
CLIENTS = [
    {},
    {"token": "a/token+of=a-role"},
    {"endpoint": "https://host:443", "addressing_style": "virtual"},
    {"endpoint": "https://s3.eu-west-1.amazonaws.com/"},
]


@pytest.mark.parametrize("operation", VALUES)
@pytest.mark.parametrize("options", CLIENTS, ids=repr)
def test_a_repeated_request_is_the_one_that_botocore_would_send(operation: str, options: dict[str, str]) -> None:
    server = Server()
    s3_client = client(server, **options)
    repeated = requests(s3_client, options.get("token"))

    @settings(max_examples=15)
    @given(first=VALUES[operation], second=VALUES[operation])
    def check(first: dict[str, Any], second: dict[str, Any]) -> None:
        repeated._forms.clear()
        server.sent.clear()
        fixed = {"Bucket": "archive", **FIXED[operation]}
        repeated.ask(operation, {**fixed, **first})
        same = repeated.ask(operation, {**fixed, **second})
        assert server.by_botocore() == [True, False]
        at = server.sent[1].headers["X-Amz-Date"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("botocore.auth.get_current_datetime", lambda: _time(at))
            answer = getattr(s3_client, operation)(**fixed, **second)
        assert content(server.sent[1]) == content(server.sent[2])
        assert {**same, "ResponseMetadata": 0} == {**answer, "ResponseMetadata": 0}

    check()


def _time(at: str) -> datetime:
    return datetime.strptime(at, "%Y%m%dT%H%M%SZ")  # noqa: DTZ007 - as botocore's


def test_another_option_or_a_large_body_is_another_kind_of_request() -> None:
    server = Server()
    repeated = requests(client(server))
    part = {"Bucket": "archive", "Key": "a", "UploadId": "u", "PartNumber": 1, "ContentMD5": "MDEyMzQ1Njc4OWFiY2RlZg=="}
    for body in (b"1", b"2", bytes(MOST + 1), b"3"):
        repeated.ask("upload_part", {**part, "Body": body})
    repeated.ask("upload_part", {**part, "Body": b"4", "RequestPayer": "requester"})
    repeated.ask("head_bucket", {"Bucket": "archive"})
    repeated.ask("head_bucket", {"Bucket": "archive"})
    assert server.by_botocore() == [True, False, True, False, True, True, True]


def test_what_is_signed_in_another_way_is_not_repeated() -> None:
    server = Server()
    repeated = requests(client(server, signature_version=UNSIGNED))
    for _ in range(3):
        repeated.ask("create_multipart_upload", CREATE)
    # Credentials that changed unnoticed would be signed with others.
    other = RepeatedRequests(client(server), lambda: ReadOnlyCredentials("AKID", "another", None))
    for _ in range(3):
        other.ask("create_multipart_upload", CREATE)
    assert server.by_botocore() == [True] * 6


def test_botocore_sends_all_if_it_does_not_have_its_session_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    s3_client = client(server)
    endpoint = s3_client._endpoint
    monkeypatch.setattr(s3_client, "_endpoint", None)
    repeated = requests(s3_client)
    s3_client._endpoint = endpoint
    for _ in range(3):
        repeated.ask("create_multipart_upload", CREATE)
    assert server.by_botocore() == [True] * 3


@pytest.mark.parametrize("status", [400, 403, 404, 429, 500, 503])
def test_an_error_is_botocore_s_and_the_next_request_too(status: int) -> None:
    server = Server()
    repeated = requests(client(server))
    server.answers = [(200, ANSWER), (status, b"<Error><Code>SomeCode</Code><RequestId>1</RequestId></Error>")]
    repeated.ask("create_multipart_upload", CREATE)
    with pytest.raises(ClientError) as raised:
        repeated.ask("create_multipart_upload", CREATE)
    assert raised.value.response["Error"]["Code"] == "SomeCode"
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    for _ in range(2):
        repeated.ask("create_multipart_upload", CREATE)
    assert server.by_botocore() == [True, False, True, False]


@pytest.mark.parametrize(
    "answer",
    [
        (301, b"<Error><Code>PermanentRedirect</Code></Error>"),
        (307, b"<Error><Code>Redirect</Code></Error>"),
        (307, b""),
        (400, b"<Error><Code>IllegalLocationConstraintException</Code></Error>"),
        (200, b"<Result/>"),
    ],
    ids=["301", "307", "307 without a body", "another region", "a success that confirms nothing"],
)
def test_botocore_asks_again_where_it_knows_more(answer: tuple[int, bytes]) -> None:
    server = Server()
    repeated = requests(client(server))
    server.answers = [(200, ANSWER), answer]
    repeated.ask("create_multipart_upload", CREATE)
    assert repeated.ask("create_multipart_upload", CREATE)["UploadId"] == "an-id"
    assert server.by_botocore() == [True, False, True]


def test_an_error_in_a_success_is_an_error() -> None:
    server = Server()
    repeated = requests(client(server))
    repeated.ask("upload_part", FIRST_PART)
    server.answers = [(200, b"<Error><Code>InternalError</Code></Error>")] * 2
    for _ in range(2):
        with pytest.raises(ClientError) as raised:
            repeated.ask("upload_part", FIRST_PART)
        assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert server.by_botocore() == [True, False, True]


def test_after_a_broken_connection_botocore_waits_for_the_answer_before_it_sends_a_body() -> None:
    server = Server()
    repeated = requests(client(server))
    repeated.ask("upload_part", FIRST_PART)
    send = server.send

    def breaks(request: AWSPreparedRequest) -> AWSResponse:
        server.send = send  # type: ignore[method-assign]
        raise ConnectionClosedError(endpoint_url=request.url)

    server.send = breaks  # type: ignore[method-assign]
    with pytest.raises(ConnectionClosedError):
        repeated.ask("upload_part", FIRST_PART)
    repeated.ask("upload_part", FIRST_PART)
    assert server.by_botocore() == [True, True]


def test_what_the_store_has_done_counts_though_credentials_cannot_be_renewed() -> None:
    def expired() -> ReadOnlyCredentials:
        raise CredentialRetrievalError(provider="a role", error_msg="gone")

    server = Server()
    repeated = RepeatedRequests(client(server), expired)
    for _ in range(2):
        assert repeated.ask("create_multipart_upload", CREATE)["UploadId"] == "an-id"
    assert server.by_botocore() == [True, True]


def test_requests_to_which_a_handler_adds_what_a_form_does_not_have_are_not_repeated() -> None:
    server = Server()
    s3_client = client(server)
    s3_client.meta.events.register(
        "before-sign.s3.CreateMultipartUpload",
        lambda request, **_: request.headers.add_header("x-amz-checksum-crc32", "AAAAAA=="),
    )
    repeated = requests(s3_client)
    for _ in range(3):
        repeated.ask("create_multipart_upload", CREATE)
    assert server.by_botocore() == [True] * 3

"""The messages of the S3 store when trying again is useless; they keep secrets to themselves."""

import logging
import re
import traceback
from collections.abc import Callable

import pytest

from kafka_archiver.messages.errors import ArchiverError, ConfigError, PermanentError, TransientError
from kafka_archiver.store import open_store, s3_client
from kafka_archiver.store.options import S3Options
from kafka_archiver.store.s3 import S3Store
from tests.support.faulty_s3 import BUCKET, Fault, FaultyS3, refuse
from tests.unit.conftest import ACCESS_KEY, SECRET_KEY, TOKEN, TRIES, OpenFaulty

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (404, "NoSuchBucket", "bucket archive does not exist at {url}; create it or correct store.url"),
        (403, "AccessDenied", "access denied to a/key in bucket archive at {url}: these credentials need s3:PutObject"),
        (403, "InvalidAccessKeyId", "{url} refuses the credentials (InvalidAccessKeyId): correct login and password"),
        (403, "SignatureDoesNotMatch", "{url} refuses the credentials (SignatureDoesNotMatch)"),
        (400, "ExpiredToken", "the credentials for {url} have expired: renew aws_session_token, or use role_arn"),
        (403, "RequestTimeTooSkewed", "the clocks of this machine and of {url} differ by too much"),
        (301, "PermanentRedirect", "bucket archive is in another region than {url} (PermanentRedirect)"),
        (501, "NotImplemented", "{url} does not support put_object as asked (NotImplemented)"),
        (400, "KeyTooLongError", "the key is too long for {url} (S3 allows 1024 bytes): a/key"),
        (403, "InvalidObjectState", "a/key is in a storage class from which it must be restored before it can be read"),
        (400, "InvalidStorageClass", "put_object of a/key in bucket archive: HTTP 400 InvalidStorageClass from {url}"),
    ],
)
def test_a_refusal_says_what_to_do_and_is_not_tried_again(
    server: FaultyS3, store: S3Store, status: int, code: str, expected: str
) -> None:
    # It might be about the checksums: that is tried without them.
    tries = 2 if code == "NotImplemented" else 1
    server.fail("put_object", *[refuse(status, code)] * tries)
    with pytest.raises(PermanentError, match=re.escape(expected.format(url=server.url))) as caught:
        store.put("a/key", b"x")
    assert server.requests.count("put_object") == tries
    # What the store's own support will ask for.
    assert "REQ1" in str(caught.value)


@pytest.mark.parametrize(
    ("operation", "ask", "permission"),
    [
        ("get_object", lambda s: s.get("k"), "s3:GetObject"),
        ("head_object", lambda s: s.head("k"), "s3:GetObject"),
        ("create", lambda s: s.create("k", b""), "s3:PutObject"),
        ("list_objects_v2", lambda s: list(s.list("")), "s3:ListBucket"),
        ("delete_object", lambda s: s.delete("k"), "s3:DeleteObject"),
        ("create_multipart_upload", lambda s: s.start_upload("k"), "s3:PutObject"),
        ("abort_multipart_upload", lambda s: s.abort_upload("k", "id"), "s3:AbortMultipartUpload"),
    ],
)
def test_a_denied_request_names_the_missing_permission(
    server: FaultyS3, store: S3Store, operation: str, ask: Callable[[S3Store], object], permission: str
) -> None:
    server.fail(operation, refuse(403, "AccessDenied"))
    with pytest.raises(PermanentError, match=f"access denied to .* in bucket archive at .*{permission}"):
        ask(store)


def test_a_missing_bucket_is_no_missing_object(server: FaultyS3, store: S3Store) -> None:
    assert store.head("k") is None
    server.fail("head_object", refuse(404, ""))
    server.fail("head_bucket", refuse(404, ""))
    with pytest.raises(PermanentError, match="bucket archive does not exist"):
        store.head("k")


def test_a_head_without_reason_hints_at_expired_credentials(server: FaultyS3, store: S3Store) -> None:
    server.fail("head_object", *[refuse(400, "ExpiredToken")] * 2)
    with pytest.raises(PermanentError, match="refuses head_object of k without a reason: often the credentials"):
        store.head("k")


def test_no_credentials_anywhere_is_said_so(server: FaultyS3, no_credentials: None) -> None:
    store = S3Store(BUCKET, "", S3Options.parse({"endpoint_url": server.url, "region_name": "us-east-1"}))
    with pytest.raises(PermanentError, match=f"no credentials for {server.url}: give them to the Airflow connection"):
        store.get("k")
    assert server.requests == []


def test_credentials_come_from_the_environment_when_none_are_given(
    server: FaultyS3, no_credentials: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "FROMENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    # No region anywhere either.
    S3Store(BUCKET, "", S3Options.parse({"endpoint_url": server.url, "verify": "false"})).put("k", b"")
    assert "Credential=FROMENV/" in server.headers[0]["Authorization"]


class TestRoles:
    def test_a_role_s_credentials_are_used_and_renewed_before_they_expire(
        self, server: FaultyS3, connect: OpenFaulty, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.url)
        store = connect(role_arn="arn:aws:iam::123456789012:role/archiver", external_id="e-1")
        for _ in range(3):
            store.put("k", b"")
        signers = [re.search(r"Credential=(\w+)/", h["Authorization"]) for h in server.headers]
        assert [(r, s and s[1]) for r, s in zip(server.requests, signers, strict=True)] == [
            ("AssumeRole", ACCESS_KEY),
            ("put_object", "ROLEKEY1"),
            ("AssumeRole", ACCESS_KEY),
            ("put_object", "ROLEKEY2"),
            ("put_object", "ROLEKEY2"),
        ]
        assert b"RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Farchiver" in server.bodies[0]
        assert b"ExternalId=e-1" in server.bodies[0]
        assert server.headers[-1]["X-Amz-Security-Token"] == "role-token-2"

    def test_a_role_that_may_not_be_assumed_is_a_permanent_error(
        self, server: FaultyS3, connect: OpenFaulty, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.url)
        store = connect(role_arn="arn:aws:iam::123456789012:role/other")
        server.fail("AssumeRole", refuse(403, "AccessDenied"))
        expected = (
            r"AssumeRole for bucket archive: HTTP 403 AccessDenied from the token service.* these credentials may"
        )
        with pytest.raises(PermanentError, match=expected):
            store.put("k", b"")


class TestSecrets:
    SECRETS = (SECRET_KEY, TOKEN)

    def _assert_kept(self, *texts: str) -> None:
        for text in texts:
            assert not [secret for secret in self.SECRETS if secret in text], text

    @pytest.mark.parametrize(
        "fault",
        [
            refuse(403, "SignatureDoesNotMatch", f"CanonicalRequest: x-amz-security-token:{TOKEN} {SECRET_KEY}"),
            refuse(400, "InvalidRequest", f"{TOKEN} {SECRET_KEY}"),
            refuse(503, "SlowDown", f"{TOKEN} {SECRET_KEY}"),
            Fault("reset"),
            Fault("swallow"),
        ],
        ids=lambda fault: fault.code + fault.kind,
    )
    def test_no_error_holds_a_secret_even_if_the_server_repeats_it(
        self, server: FaultyS3, store: S3Store, caplog: pytest.LogCaptureFixture, fault: Fault
    ) -> None:
        server.fail("put_object", *[fault] * TRIES)
        with caplog.at_level(logging.INFO), pytest.raises(ArchiverError) as caught:
            store.put("k", b"x")
        self._assert_kept("".join(traceback.format_exception(caught.value)), repr(caught.value), caplog.text)

    def test_no_repr_holds_a_secret(self, store: S3Store) -> None:
        options = S3Options.parse(
            {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY, "aws_session_token": TOKEN}
        )
        self._assert_kept(repr(store), str(store), repr(options), str(options))

    @pytest.mark.parametrize("name", ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"])
    @pytest.mark.parametrize("mishap", ["\n", " ", "\r\n", "\x00"])
    def test_a_line_break_pasted_with_a_secret_is_found_before_it_is_sent(
        self, connect: OpenFaulty, name: str, mishap: str
    ) -> None:
        with pytest.raises(ConfigError, match=f"{name} contains white space") as caught:
            connect(**{name: TOKEN + mishap})
        self._assert_kept("".join(traceback.format_exception(caught.value)))

    @pytest.mark.parametrize("url", [f"s3://AKID:{SECRET_KEY}@archive/lake", f"s3a://AKID:{SECRET_KEY}@archive"])
    def test_credentials_in_the_url_are_refused_without_repeating_them(self, url: str) -> None:
        with pytest.raises(ConfigError, match=r"store\.url holds credentials") as caught:
            open_store(url, {})
        self._assert_kept("".join(traceback.format_exception(caught.value)))

    def test_credentials_in_the_endpoint_are_refused_without_repeating_them(self) -> None:
        with pytest.raises(ConfigError, match="endpoint_url holds credentials") as caught:
            open_store("s3://archive", {"endpoint_url": f"http://AKID:{SECRET_KEY}@minio:9000"})
        self._assert_kept("".join(traceback.format_exception(caught.value)))


def test_stores_with_the_same_options_share_a_client(connect: OpenFaulty) -> None:
    assert connect()._connection is connect()._connection
    assert connect()._connection is not connect(aws_session_token="another")._connection


def test_a_profile_that_does_not_exist_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"the store's connection cannot be used: .*no-such-profile"):
        S3Store(BUCKET, "", S3Options.parse({"profile_name": "no-such-profile", "endpoint_url": "http://x"}))


def test_a_bundle_of_certificates_that_is_not_there_is_a_config_error(connect: OpenFaulty) -> None:
    with pytest.raises(ConfigError, match=r"verify: expected true, false or the path .* found '/nonexistent/ca\.pem'"):
        connect(verify="/nonexistent/ca.pem")


def test_a_stalled_connection_names_what_was_waited_for(server: FaultyS3, connect: OpenFaulty) -> None:
    server.fail("get_object", *[Fault("stall")] * TRIES)
    expected = f"get_object of k in bucket archive: no answer in time at {server.url}"
    with pytest.raises(TransientError, match=re.escape(expected)):
        connect(read=0.1).get("k")


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which boto3's default chain finds nothing."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    # The client made in an earlier environment.
    s3_client._connection.cache_clear()

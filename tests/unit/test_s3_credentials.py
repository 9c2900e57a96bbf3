"""Every way in which the store gets credentials, with the real client of each service: whose keys sign the requests."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.store.options import S3Options
from kafka_archiver.store.s3 import S3Store
from kafka_archiver.store.s3_client import _connection
from tests.support.faulty_s3 import BUCKET, FaultyS3
from tests.support.identities import Identities, identities

pytestmark = pytest.mark.unit

KEYS = {"aws_access_key_id": "OwnKey", "aws_secret_access_key": "OwnSecret"}
Signer = Callable[..., tuple[str, str | None]]


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Identities]:
    """The services; nothing else gives credentials."""
    _connection.cache_clear()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with identities() as services_of_identity:
        yield services_of_identity
    _connection.cache_clear()


@pytest.fixture
def signer(server: FaultyS3) -> Signer:
    """Sends a request with a store of these options. Returns the key and the token with which it was signed."""

    def signed(store: S3Store | None = None, **options: str) -> tuple[str, str | None]:
        all_options = {"endpoint_url": server.url, "region_name": "us-east-1", **options}
        (store or S3Store(BUCKET, "", S3Options.parse(all_options))).put("k", b"x")
        headers = server.headers[-1]
        [key] = re.findall(r"Credential=([^/]+)/", headers["Authorization"])
        return key, headers.get("X-Amz-Security-Token")

    return signed


def test_keys(services: Identities, signer: Signer) -> None:
    assert signer(**KEYS) == ("OwnKey", None)


def test_keys_with_the_token_of_a_session(services: Identities, signer: Signer) -> None:
    assert signer(**KEYS, aws_session_token="OwnToken") == ("OwnKey", "OwnToken")


def test_a_profile(services: Identities, signer: Signer, tmp_path: Path) -> None:
    (tmp_path / "AWS_SHARED_CREDENTIALS_FILE").write_text(
        "[other]\naws_access_key_id=ProfileKey\naws_secret_access_key=ProfileSecret\n"
    )
    assert signer(profile_name="other") == ("ProfileKey", None)
    with pytest.raises(ConfigError, match="nobody"):
        signer(profile_name="nobody")


def test_a_role_that_our_keys_assume_with_all_that_the_connection_says(services: Identities, signer: Signer) -> None:
    role = {
        "role_arn": "arn:aws:iam::123456789012:role/archiver",
        "external_id": "External",
        "role_parameters": json.dumps({"DurationSeconds": 900, "RoleSessionName": "Mine"}),
        "sts_endpoint_url": services.url,
    }
    assert signer(**KEYS, **role) == ("StsKey1", "StsToken1")
    [asked] = services.asked
    expected = {"RoleArn": role["role_arn"], "ExternalId": "External", "DurationSeconds": "900"}
    assert expected.items() <= asked.items()
    assert (asked["Action"], asked["RoleSessionName"]) == ("AssumeRole", "Mine")
    assert "Credential=OwnKey/" in services.authorizations[0]


def test_a_role_that_a_token_in_a_file_assumes(services: Identities, signer: Signer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first-token")
    # So short that each request renews them: the token in the file is another one then.
    services.seconds = 30
    options = {
        "role_arn": "arn:aws:iam::123456789012:role/archiver",
        "web_identity_token_file": str(token),
        "sts_endpoint_url": services.url,
    }
    first, _ = signer(**options)
    token.write_text("second-token")
    second, _ = signer(**options)
    assert first != second
    assert {asked["Action"] for asked in services.asked} == {"AssumeRoleWithWebIdentity"}
    assert services.asked[0]["WebIdentityToken"] == "first-token"
    assert services.asked[-1]["WebIdentityToken"] == "second-token"
    # The token proves who asks: no keys do.
    assert set(services.authorizations) == {""}


def test_the_token_of_a_pod_in_the_environment(
    services: Identities, signer: Signer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("pod-token")
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", services.url)
    assert signer() == ("StsKey1", "StsToken1")
    assert services.asked[0]["WebIdentityToken"] == "pod-token"


def test_the_role_of_a_container(services: Identities, signer: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{services.url}/container")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-secret")
    assert signer() == ("ContainerKey1", "ContainerToken1")
    assert services.authorizations == ["container-secret"]


def test_the_role_of_the_machine(services: Identities, signer: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", services.url)
    assert signer() == ("MachineKey1", "MachineToken1")


def test_a_role_that_the_machine_s_role_assumes(
    services: Identities, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", services.url)
    assert signer(role_arn="arn:r:of-the-archive-bucket", sts_endpoint_url=services.url) == ("StsKey2", "StsToken2")
    assert "Credential=MachineKey1/" in services.authorizations[0]


@pytest.mark.parametrize("style", ["path", "virtual"])
def test_a_bucket_in_the_path_or_in_the_host(
    services: Identities, server: FaultyS3, signer: Signer, style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = socket.getaddrinfo
    # Every name below localhost is this machine, which not every resolver knows.
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *more: resolve("127.0.0.1", *more))
    local = server.url.replace("127.0.0.1", "localhost")
    signer(**KEYS, addressing_style=style, endpoint_url=local)
    host = local.removeprefix("http://")
    assert server.headers[-1]["Host"] == (f"{BUCKET}.{host}" if style == "virtual" else host)

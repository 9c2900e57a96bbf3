"""A broker with authentication: SASL over TLS, or client certificates."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from scripts.stack.kafka import Kafka, KafkaPorts
from scripts.stack.ports import HOST, free_ports
from tests.support import quick
from tests.support.certificates import Authority
from tests.support.oidc import AUDIENCE, IdentityProvider

Properties = dict[str, str]
# With characters that JSON, Java's properties and JAAS have to escape.
SECRET = "Ge\"he'im\\12"
USER = "archiver"


@dataclass(frozen=True)
class GuardedPorts:
    BASE: ClassVar[int] = 18_130
    sasl: int
    mutual: int


@dataclass(frozen=True)
class Guarded:
    """:param kafka: the broker; its plain listener has no authentication.
    :param connections: librdkafka's properties for the other listeners, as in an Airflow connection.
    """

    kafka: Kafka
    provider: IdentityProvider
    connections: dict[str, Properties]


@contextmanager
def guarded_broker(directory: Path) -> Iterator[Guarded]:
    """One listener for OAUTHBEARER, PLAIN and SCRAM over TLS, one for client certificates."""
    directory.mkdir()
    authority = Authority(directory)
    with IdentityProvider(authority.sign("provider"), USER, SECRET).serving() as provider:
        main, more = free_ports(KafkaPorts), free_ports(GuardedPorts)
        kafka = Kafka(directory / "kafka", main, _settings(main, more, authority, provider), quick.JAVA)
        try:
            # Options for any program that runs on this Java.
            urls = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.url}/keys"
            with patch.dict(os.environ, {"JDK_JAVA_OPTIONS": urls}):
                kafka.start()
            _add_user(kafka)
            yield Guarded(kafka, provider, _connections(more, authority, provider))
        finally:
            kafka.stop(grace=0)


def _settings(main: KafkaPorts, more: GuardedPorts, authority: Authority, provider: IdentityProvider) -> Properties:
    listeners = {"PLAINTEXT": main.clients, "GUARDED": more.sasl, "MUTUAL": more.mutual}
    addresses = ",".join(f"{name}://{HOST}:{port}" for name, port in listeners.items())
    package = "org.apache.kafka.common.security"
    # The claim is for the broker's own login: with any option, the login module requires one.
    options = (
        f'unsecuredLoginStringClaim_sub="broker" ssl.truststore.type="PEM" ssl.truststore.location="{authority.file}"'
    )
    return {
        "listeners": f"{addresses},CONTROLLER://{HOST}:{main.controller}",
        "advertised.listeners": addresses,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_SSL,MUTUAL:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.sign("broker")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.guarded.sasl.enabled.mechanisms": "OAUTHBEARER,PLAIN,SCRAM-SHA-512",
        "listener.name.guarded.plain.sasl.jaas.config": (
            f'{package}.plain.PlainLoginModule required user_{USER}="{_in_file(SECRET)}";'
        ),
        "listener.name.guarded.scram-sha-512.sasl.jaas.config": f"{package}.scram.ScramLoginModule required;",
        "listener.name.guarded.oauthbearer.sasl.jaas.config": (
            f"{package}.oauthbearer.OAuthBearerLoginModule required {options};"
        ),
        "listener.name.guarded.oauthbearer.sasl.server.callback.handler.class": (
            f"{package}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": f"{provider.url}/keys",
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }


def _in_file(secret: str) -> str:
    """Escaped for JAAS, then for the properties file."""
    return secret.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")


def _add_user(kafka: Kafka) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    user = UserScramCredentialUpsertion(USER, info, SECRET.encode())
    for future in admin.alter_user_scram_credentials([user]).values():
        future.result(timeout=30)


def _connections(more: GuardedPorts, authority: Authority, provider: IdentityProvider) -> dict[str, Properties]:
    trust = {"ssl.ca.location": str(authority.file)}
    guarded = {"bootstrap.servers": f"{HOST}:{more.sasl}", "security.protocol": "SASL_SSL", **trust}
    password = {**guarded, "sasl.username": USER, "sasl.password": SECRET}
    key, certificate = authority.sign("client").read_text().split("-----BEGIN CERTIFICATE-----")
    tokens = {
        **guarded,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
    }
    return {
        "OAUTHBEARER": {
            **tokens,
            "sasl.oauthbearer.client.id": USER,
            "sasl.oauthbearer.client.secret": SECRET,
            "sasl.oauthbearer.scope": "archive read",
            "https.ca.location": str(authority.file),
        },
        "OAUTHBEARER in other words": {
            **tokens,
            "sasl.oauthbearer.client.credentials.client.id": USER,
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
            "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=pool-1",
            "https.ca.pem": authority.file.read_text(),
        },
        "PLAIN": {**password, "sasl.mechanism": "PLAIN"},
        "SCRAM": {**password, "sasl.mechanisms": "SCRAM-SHA-512"},
        "TLS": {
            "bootstrap.servers": f"{HOST}:{more.mutual}",
            "security.protocol": "SSL",
            **trust,
            "ssl.certificate.pem": f"-----BEGIN CERTIFICATE-----{certificate}",
            "ssl.key.pem": key,
        },
        "TLS in other words": {
            # The certificate does not have this host name.
            "bootstrap.servers": f"localhost:{more.mutual}",
            "ssl.endpoint.identification.algorithm": "none",
            "security.protocol": "SSL",
            "ssl.ca.pem": authority.file.read_text(),
            "ssl.keystore.location": str(authority.sign_pkcs12("other-client", SECRET)),
            "ssl.keystore.password": SECRET,
        },
    }

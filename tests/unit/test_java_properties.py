"""One Kafka connection for both clients: librdkafka's properties as the Java client's."""

import pytest

from kafka_archiver.kafka.java_properties import java_properties, native_properties
from kafka_archiver.messages.errors import ConfigError

BROKERS = {"bootstrap.servers": "b:9092"}


def test_plain_properties_stay_and_those_of_librdkafka_alone_go() -> None:
    properties = {**BROKERS, "security.protocol": "SSL", "client.rack": "a", "queued.min.messages": "1"}
    assert java_properties(properties) == {**BROKERS, "security.protocol": "SSL", "client.rack": "a"}


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-512", "scram.ScramLoginModule")]
)
def test_user_and_password_become_a_login_module_with_quotes_escaped(mechanism: str, module: str) -> None:
    properties = {**BROKERS, "sasl.mechanisms": mechanism, "sasl.username": "u", "sasl.password": 'a"b\\c'}
    assert java_properties(properties) == {
        **BROKERS,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'org.apache.kafka.common.security.{module} required username="u" password="a\\"b\\\\c";',
    }


def test_pem_files_become_stores_of_type_pem() -> None:
    assert java_properties({**BROKERS, "ssl.ca.location": "/ca.pem"}) == {
        **BROKERS,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
    }


OIDC = {
    **BROKERS,
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": 'a"b\\c',
    "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
}
HANDLER = {
    "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
}
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def test_oidc_becomes_a_login_module_and_its_handler() -> None:
    assert java_properties(OIDC) == {
        **BROKERS,
        **HANDLER,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
        "sasl.jaas.config": f'{MODULE} clientId="me" clientSecret="a\\"b\\\\c";',
    }


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({"sasl.oauthbearer.scope": "a b"}, 'scope="a b"'),
        ({"sasl.oauthbearer.extensions": "x=1, y=2=3"}, 'extension_x="1" extension_y="2=3"'),
        ({"https.ca.location": "/ca.pem"}, 'ssl.truststore.type="PEM" ssl.truststore.location="/ca.pem"'),
        ({"https.ca.pem": "A\nB"}, 'ssl.truststore.type="PEM" ssl.truststore.certificates="A\\nB"'),
    ],
)
def test_what_is_said_to_the_identity_provider_and_how_it_is_trusted(more: dict[str, str], options: str) -> None:
    assert java_properties({**OIDC, **more})["sasl.jaas.config"].endswith(f"{options};")


def test_the_longer_names_of_the_client_mean_the_same() -> None:
    longer = {name.replace(".client.", ".client.credentials.client."): value for name, value in OIDC.items()}
    assert longer != OIDC
    assert java_properties(longer) == java_properties(OIDC)


def test_what_java_cannot_do_of_oauthbearer_says_what_is_expected() -> None:
    properties = {name: value for name, value in OIDC.items() if "secret" not in name and "method" not in name}
    with pytest.raises(ConfigError, match=r"`sasl.oauthbearer.method` oidc.*found method 'default', no client.secret"):
        java_properties(properties)
    with pytest.raises(ConfigError, match=r"found no token\.endpoint\.url"):
        java_properties({name: value for name, value in OIDC.items() if "token" not in name})
    with pytest.raises(ConfigError, match=r"found grant\.type 'jwt-bearer'") as caught:
        java_properties({**OIDC, "sasl.oauthbearer.grant.type": "jwt-bearer"})
    assert 'a"b' not in str(caught.value)
    own = {"sasl.jaas.config": "x", "sasl.login.callback.handler.class": "mine"}
    assert java_properties({**properties, **own}).items() >= own.items()
    assert java_properties({**OIDC, **own}).items() >= own.items()
    assert java_properties({**OIDC, "sasl.jaas.config": "x"}).items() >= HANDLER.items()


def test_java_s_own_trust_is_not_mixed_with_librdkafka_s() -> None:
    own = {"ssl.truststore.location": "/trust.jks", "ssl.truststore.password": "p"}
    assert java_properties({**BROKERS, "ssl.ca.location": "/ca.pem", **own}) == {**BROKERS, **own}
    assert java_properties({**BROKERS, "ssl.ca.location": "probe"}) == BROKERS


def test_names_of_brokers_that_nobody_checks_are_not_checked_by_java_either() -> None:
    name = "ssl.endpoint.identification.algorithm"
    assert java_properties({**BROKERS, name: "none"})[name] == ""
    assert java_properties({**BROKERS, name: "https"})[name] == "https"


def test_a_client_certificate_is_text_for_both() -> None:
    properties = {**BROKERS, "ssl.certificate.pem": "C", "ssl.key.pem": "K", "ssl.key.password": "p"}
    assert java_properties(properties) == {
        **BROKERS,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "C",
        "ssl.keystore.key": "K",
        "ssl.key.password": "p",
    }
    with pytest.raises(ConfigError, match=r"`ssl\.certificate\.location`.*expected.*`ssl\.certificate\.pem`"):
        java_properties({**BROKERS, "ssl.certificate.location": "/c", "ssl.key.location": "/k"})


def test_a_mechanism_without_translation_needs_its_own_login_module() -> None:
    properties = {**BROKERS, "sasl.mechanism": "GSSAPI"}
    with pytest.raises(
        ConfigError, match=r"GSSAPI.*`sasl\.jaas\.config`.*PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"
    ):
        java_properties(properties)
    assert java_properties({**properties, "sasl.jaas.config": "x"})["sasl.jaas.config"] == "x"


def test_what_only_java_knows_is_kept_from_librdkafka() -> None:
    properties = {**BROKERS, "sasl.jaas.config": "x", "ssl.truststore.location": "/t", "ssl.ca.location": "/ca"}
    assert native_properties(properties) == {**BROKERS, "ssl.ca.location": "/ca"}

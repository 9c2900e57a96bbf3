"""One connection for both Kafka clients: translates librdkafka's properties to the Java client's. Pure."""

from collections.abc import Mapping

from kafka_archiver.messages.errors import ConfigError

_SECURITY = "org.apache.kafka.common.security"
_USER_AND_PASSWORD = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
}
_BEARER = "OAUTHBEARER"
_OAUTH = "sasl.oauthbearer."
# Java has these under the same names.
_OAUTH_SAME = ("token.endpoint.url", "sub.claim.name")
# librdkafka's default, and the only grant type of Java's client before 4.1.
_GRANT = "client_credentials"
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def login(mechanism: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The Java client's properties for the same login.

    A `sasl.jaas.config` in the connection is kept unchanged.

    :raises ConfigError: the mechanism has no translation, or a property is missing.
    """
    own = properties.get("sasl.jaas.config")
    oauth = {name.removeprefix(_OAUTH): value for name, value in properties.items() if name.startswith(_OAUTH)}
    oidc = oauth.get("method") == "oidc"
    if mechanism == _BEARER and (oidc or not own):
        return {
            "sasl.jaas.config": own or _client_credentials(oauth, properties),
            "sasl.login.callback.handler.class": f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler",
            **{_OAUTH + name: oauth[name] for name in _OAUTH_SAME if name in oauth},
        }
    if own:
        return {"sasl.jaas.config": own}
    if mechanism not in _USER_AND_PASSWORD:
        raise ConfigError(
            f"the Kafka connection has SASL mechanism {mechanism}, for which Spark's reader needs "
            f"`sasl.jaas.config` in the same connection; without it, expected one of "
            f"{', '.join([*_USER_AND_PASSWORD, _BEARER])}"
        )
    names = {name: properties.get(f"sasl.{name}", "") for name in ("username", "password")}
    return {"sasl.jaas.config": _module(_USER_AND_PASSWORD[mechanism], names)}


def _client_credentials(oauth: Mapping[str, str], properties: Mapping[str, str]) -> str:
    """:param oauth: the properties of OAUTHBEARER, without their common prefix."""
    client = {
        # librdkafka has two names for each.
        name: oauth.get(name) or oauth.get(f"client.credentials.{name}") or ""
        for name in ("client.id", "client.secret")
    }
    credentials = {"method": "default", "grant.type": _GRANT, "token.endpoint.url": "", **oauth, **client}
    wrong = [
        f"{name} {credentials[name]!r}"
        for name, only in (("method", "oidc"), ("grant.type", _GRANT))
        if credentials[name] != only
    ]
    missing = [f"no {name}" for name in ("client.id", "client.secret", "token.endpoint.url") if not credentials[name]]
    if wrong or missing:
        raise ConfigError(
            f"the Kafka connection has SASL mechanism {_BEARER}, and Spark's reader expects `{_OAUTH}method` oidc "
            f"with `client.id`, `client.secret` and `token.endpoint.url` (each after `{_OAUTH}`); found "
            f"{', '.join(wrong + missing)}. Correct them, or add Java's own `sasl.jaas.config` and "
            "`sasl.login.callback.handler.class` to librdkafka's properties"
        )
    options = {"clientId": client["client.id"], "clientSecret": client["client.secret"]}
    if scope := oauth.get("scope"):
        options["scope"] = scope
    for extension in filter(None, oauth.get("extensions", "").split(",")):
        name, _, value = extension.partition("=")
        options[f"extension_{name.strip()}"] = value
    # Both clients have separate authorities for brokers and for the token endpoint.
    options |= trust(properties, "https.ca.")
    return _module(f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule", options)


def trust(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Java's properties for librdkafka's `<prefix>pem` or `<prefix>location`; empty: Java's default authorities."""
    if authorities := properties.get(f"{prefix}pem"):
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    # "probe": librdkafka searches the system's usual places.
    if (file := properties.get(f"{prefix}location", "probe")) != "probe":
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": file}
    return {}


def _module(name: str, options: Mapping[str, str]) -> str:
    quoted = (f'{option}="{value.translate(_ESCAPED)}"' for option, value in options.items())
    return f"{name} required {' '.join(quoted)};"


_SSL = {
    "ssl.key.password": "ssl.key.password",
    "ssl.keystore.location": "ssl.keystore.location",
    "ssl.keystore.password": "ssl.keystore.password",
}
_SAME = ("bootstrap.servers", "security.protocol", "client.id", "client.rack", "client.dns.lookup")

# librdkafka refuses to start with these.
_JAVA_ONLY = ("sasl.jaas.config", "sasl.login.", "sasl.client.callback", "ssl.truststore.", "ssl.keystore.type")


def native_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties without those that only the Java client knows."""
    return {name: value for name, value in properties.items() if not name.startswith(_JAVA_ONLY)}


def java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The Java consumer's properties for the same brokers, authentication and encryption.

    A Java property in the connection (`sasl.jaas.config`, `ssl.truststore.location`, …) is kept unchanged.

    :raises ConfigError: a property has no translation, or a related property is missing.
    """
    java = {name: properties[name] for name in _SAME if name in properties}
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms")
    if mechanism:
        java |= {"sasl.mechanism": mechanism, **login(mechanism, properties)}
    if not any(name.startswith("ssl.truststore.") for name in properties):
        java |= trust(properties, "ssl.ca.")
    if certificate := properties.get("ssl.certificate.pem"):
        java |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": certificate,
            "ssl.keystore.key": properties.get("ssl.key.pem", ""),
        }
    elif "ssl.certificate.location" in properties and "ssl.keystore.location" not in properties:
        raise ConfigError(
            "the Kafka connection has its client certificate in `ssl.certificate.location`, which Spark's reader "
            "cannot use; expected the text of certificate and key in `ssl.certificate.pem` and `ssl.key.pem`, or a "
            "PKCS #12 file in `ssl.keystore.location` with `ssl.keystore.password`"
        )
    java |= {java_name: properties[name] for name, java_name in _SSL.items() if name in properties}
    if algorithm := properties.get("ssl.endpoint.identification.algorithm"):
        java["ssl.endpoint.identification.algorithm"] = "" if algorithm == "none" else algorithm
    return java | {name: value for name, value in properties.items() if name.startswith(_JAVA_ONLY)}

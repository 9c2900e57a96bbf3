"""How Java's client logs in: librdkafka's SASL properties as a login module and what that needs beside. Pure."""

from collections.abc import Mapping

from kafka_archiver.errors import ConfigError

_SECURITY = "org.apache.kafka.common.security"
_USER_AND_PASSWORD = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
}
_BEARER = "OAUTHBEARER"
_OAUTH = "sasl.oauthbearer."
# Java has these under the same names.
_SAME = ("token.endpoint.url", "sub.claim.name")
# Java knows no other grant before 4.1, and librdkafka has it for its default.
_GRANT = "client_credentials"
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def login(mechanism: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with which Java's client logs in as librdkafka does with these.

    A `sasl.jaas.config` of the connection's own is taken as it is.

    :raises ConfigError: there is no translation, or something that it needs is missing.
    """
    own = properties.get("sasl.jaas.config")
    oauth = {name.removeprefix(_OAUTH): value for name, value in properties.items() if name.startswith(_OAUTH)}
    oidc = oauth.get("method") == "oidc"
    if mechanism == _BEARER and (oidc or not own):
        return {
            "sasl.jaas.config": own or _client_credentials(oauth, properties),
            "sasl.login.callback.handler.class": f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler",
            **{_OAUTH + name: oauth[name] for name in _SAME if name in oauth},
        }
    if own:
        return {"sasl.jaas.config": own}
    if mechanism not in _USER_AND_PASSWORD:
        raise ConfigError(
            f"the Kafka connection asks for SASL mechanism {mechanism}, which Spark's reader gets only through "
            f"`sasl.jaas.config` in the same connection; without it, expected one of "
            f"{', '.join([*_USER_AND_PASSWORD, _BEARER])}"
        )
    names = {name: properties.get(f"sasl.{name}", "") for name in ("username", "password")}
    return {"sasl.jaas.config": _module(_USER_AND_PASSWORD[mechanism], names)}


def _client_credentials(oauth: Mapping[str, str], properties: Mapping[str, str]) -> str:
    """:param oauth: the properties of OAUTHBEARER, without the prefix that they share."""
    client = {
        # librdkafka has two names for each.
        name: oauth.get(name) or oauth.get(f"client.credentials.{name}") or ""
        for name in ("client.id", "client.secret")
    }
    found = {"method": "default", "grant.type": _GRANT, "token.endpoint.url": "", **oauth, **client}
    wrong = [
        f"{name} {found[name]!r}" for name, only in (("method", "oidc"), ("grant.type", _GRANT)) if found[name] != only
    ]
    missing = [f"no {name}" for name in ("client.id", "client.secret", "token.endpoint.url") if not found[name]]
    if wrong or missing:
        raise ConfigError(
            f"the Kafka connection asks for SASL mechanism {_BEARER}, and Spark's reader expects `{_OAUTH}method` oidc "
            f"with `client.id`, `client.secret` and `token.endpoint.url` (each after `{_OAUTH}`); found "
            f"{', '.join(wrong + missing)}. Correct them, or give Java's own `sasl.jaas.config` and "
            "`sasl.login.callback.handler.class` beside what librdkafka needs"
        )
    options = {"clientId": client["client.id"], "clientSecret": client["client.secret"]}
    if scope := oauth.get("scope"):
        options["scope"] = scope
    for extension in filter(None, oauth.get("extensions", "").split(",")):
        name, _, value = extension.partition("=")
        options[f"extension_{name.strip()}"] = value
    # Both clients tell apart whom to trust as a broker and whom as the giver of tokens.
    options |= trust(properties, "https.ca.")
    return _module(f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule", options)


def trust(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Java's words for the authorities in librdkafka's `<prefix>pem` or `<prefix>location`; none: Java's own."""
    if authorities := properties.get(f"{prefix}pem"):
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    # librdkafka's word for looking where systems have theirs.
    if (file := properties.get(f"{prefix}location", "probe")) != "probe":
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": file}
    return {}


def _module(name: str, options: Mapping[str, str]) -> str:
    quoted = (f'{option}="{value.translate(_ESCAPED)}"' for option, value in options.items())
    return f"{name} required {' '.join(quoted)};"

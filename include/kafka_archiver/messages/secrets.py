"""Decides which values of an archive's YAML may be shown in Airflow, Spark's UI or a log. Pure; only decided here.

An archive's own keys hold no secrets. In a mapping of another program's properties (a Kafka client's, Spark's, …) only
the properties in SHOWN are shown, however harmless others look.
"""

import re
from collections.abc import Iterator, Mapping

GIVEN = "(given)"
# The type of faults whose input is never shown.
SECRET = "secret"
SHOWN = frozenset(
    f"{mapping}.{name}"
    for mapping, names in {
        "source.kafka": "bootstrap.servers security.protocol sasl.mechanism sasl.mechanisms client.id client.rack",
        "source.registry": "url",
        "store.aws": "endpoint_url region_name addressing_style",
        "store.connection": "account_url account_name",
        "spark.conf": "spark.cores.max spark.driver.cores spark.driver.memory spark.executor.cores "
        "spark.executor.instances spark.executor.memory spark.log.level spark.task.cpus spark.ui.enabled spark.ui.port",
    }.items()
    for name in names.split()
)
# Logs mask only these names: masking all values outside SHOWN would mask "true" in any line.
SECRET_NAME = re.compile(
    r"pass(word|phrase|wd)|secret|token|jaas|credential|(access|account|private|api|encryption)[._-]?key|key\.pem"
    r"|oauthbearer\.config|external_id|user\.info",
    re.IGNORECASE,
)
_PASSWORD_OF_URL = re.compile(r"://[^/?#\s]*?:(\S+)@")


def shown(key: str, value: object) -> str:
    """A property as it may be shown. `key`: with its mapping's key, as in source.kafka.bootstrap.servers."""
    return plain_url(str(value)) if key in SHOWN else GIVEN


def plain_url(url: str) -> str:
    """An address without user, password, query and fragment; other text as it is."""
    scheme, separator, address = url.partition("://") if "://" in url else ("", "", url)
    place, *more = re.split("[?#]", address)
    # An @ behind ? or # is ambiguous: it may be part of the query, or end a password with such a sign.
    return scheme + separator + ("…" if "@" in "".join(more) else place.rpartition("@")[2])


def key_name(key: object) -> str:
    """A key as an error may show it: if the space after the colon is missing, the key includes the value."""
    text = str(key)
    name = re.match(r"[\w.\-]*", text)[0]  # type: ignore[index] # matches anything
    return name if name == text else f"{name}…"


def masked(properties: Mapping[str, str]) -> Iterator[str]:
    """The parts of properties that logs must mask: the values of secret names, and passwords in addresses."""
    for name, value in properties.items():
        if SECRET_NAME.search(name):
            yield value
        if name.endswith("user.info"):
            # The password alone, too: logs may show it without the user.
            yield value.partition(":")[2]
        yield from _PASSWORD_OF_URL.findall(value)

"""What of an archive's YAML may be shown, to whoever opens Airflow, Spark's UI or a log. Pure; decided here alone.

An archive's own keys hold no secrets. Of a mapping of another program's properties (a Kafka client's, Spark's, …) only
those of SHOWN are shown, however harmless the others look.
"""

import re
from collections.abc import Iterator, Mapping

GIVEN = "(given)"
# The type of a fault whose input no error shows.
SECRET = "secret"
SHOWN = frozenset(
    f"{mapping}.{name}"
    for mapping, names in {
        "source.kafka": "bootstrap.servers security.protocol sasl.mechanism sasl.mechanisms client.id client.rack",
        "source.registry": "url",
        "store.aws": "endpoint_url region_name addressing_style",
        "spark.conf": "spark.cores.max spark.driver.cores spark.driver.memory spark.executor.cores "
        "spark.executor.instances spark.executor.memory spark.log.level spark.task.cpus spark.ui.enabled spark.ui.port",
    }.items()
    for name in names.split()
)
# Logs cannot mask all that is not shown: "true" may stand in any line.
SECRET_NAME = re.compile(
    r"pass(word|phrase|wd)|secret|token|jaas|credential|(access|account|private|api|encryption)[._-]?key|key\.pem"
    r"|oauthbearer\.config|external_id|user\.info",
    re.IGNORECASE,
)
_PASSWORD_OF_URL = re.compile(r"://[^/?#\s]*?:(\S+)@")


def shown(key: str, value: object) -> str:
    """A property as it may be shown. `key`: with that of its mapping, as in source.kafka.bootstrap.servers."""
    return plain_url(str(value)) if key in SHOWN else GIVEN


def plain_url(url: str) -> str:
    """An address without user, password, query and fragment; other text as it is."""
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    place, *more = re.split("[?#]", rest)
    # An @ behind them belongs to a query, or they to a password: nobody can tell.
    return scheme + separator + ("…" if "@" in "".join(more) else place.rpartition("@")[2])


def key_name(key: object) -> str:
    """A key as an error may repeat it: where the space behind its colon is missing, its value is part of it."""
    text = str(key)
    name = re.match(r"[\w.\-]*", text)[0]  # type: ignore[index] # matches anything
    return name if name == text else f"{name}…"


def masked(properties: Mapping[str, str]) -> Iterator[str]:
    """What of properties no log may repeat: the values of secret names, and each password of an address."""
    for name, value in properties.items():
        if SECRET_NAME.search(name):
            yield value
        if name.endswith("user.info"):
            # Beside the whole of it, which is what a log would not show.
            yield value.partition(":")[2]
        yield from _PASSWORD_OF_URL.findall(value)

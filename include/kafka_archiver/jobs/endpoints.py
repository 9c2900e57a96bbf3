"""The endpoints of every job: addresses and credentials, apart from its document. Pure.

`orchestration/submit/handover.py` hands them over; on Kubernetes a person has written them into a Secret.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from kafka_archiver.messages.errors import ConfigError

# Environment variables. ENDPOINTS: the endpoints. VERDICT: the file in which a driver on the task's machine writes the
# failure, as JSON of kafka_archiver.messages.errors.Failure.
ENDPOINTS, VERDICT = "KAFKA_ARCHIVER_ENDPOINTS", "KAFKA_ARCHIVER_VERDICT"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Addresses and credentials of brokers and store, and keys of transforms, resolved from Airflow's connections.

    `kafka`: librdkafka's client properties. `store`: the options of :func:`~kafka_archiver.store.open_store`.
    `keys`: the secret keys of transforms by name.
    `master_keys`: what decrypts data keys of objects that are encrypted before they are sent, see `context/keyring`.
    Credentials are kept out of `repr`.
    """

    kafka: Mapping[str, str] = field(repr=False)
    store: Mapping[str, str] = field(repr=False)
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    master_keys: Mapping[str, str] = field(default_factory=dict, repr=False)

    def to_json(self) -> str:
        """For the environment of the Spark job."""
        more = {"keys": dict(self.keys), "master_keys": dict(self.master_keys)}
        optional = {name: value for name, value in more.items() if value}
        return json.dumps({"kafka": dict(self.kafka), "store": dict(self.store), **optional})

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The inverse of `to_json`; on Kubernetes a person wrote the text.

        :raises ConfigError: the text is something else. The message quotes nothing of it: it holds credentials.
        """
        try:
            document = json.loads(text)
            kafka, store = ({str(k): str(v) for k, v in document[name].items()} for name in ("kafka", "store"))
            keys, masters = (
                {str(k): str(v) for k, v in document.get(name, {}).items()} for name in ("keys", "master_keys")
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ConfigError(f"{ENDPOINTS} is not JSON with `kafka` and `store`, each a mapping of strings") from None
        return cls(kafka, store, keys, masters)

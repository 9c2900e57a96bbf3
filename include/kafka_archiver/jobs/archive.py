"""The input of the job `archive`: a document and, separately, the endpoints. Pure.

The task `archive` writes both and the job's main program reads both. The document is an argument, which everybody may
read. `orchestration/submit/handover.py` hands over the endpoints, addresses and credentials together; on Kubernetes a
person has written them into a Secret. A job of another name has another document.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, ValidationError

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.policies import BadRecord, LostOffsets
from kafka_archiver.values.documents import Value

if TYPE_CHECKING:
    # Not at runtime: it imports YAML, which the driver does not need.
    from kafka_archiver.config import Archive

# Environment variables. ENDPOINTS: the endpoints. VERDICT: the file in which a driver on the task's machine writes the
# failure, as JSON of kafka_archiver.messages.errors.Failure.
ENDPOINTS, VERDICT = "KAFKA_ARCHIVER_ENDPOINTS", "KAFKA_ARCHIVER_VERDICT"
# `auto` means native.
Reader = Literal["auto", "spark", "native"]


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


class ArchiveJob(Value):
    """The runs to archive, with limits and policies. It holds no secrets.

    `store`: its URL. `requests`: what requests to the store have besides, as options of the store; not written if
    none. `runs`: their names in the ledger. `memory_bytes`: how much one task buffers before it spills. `max_paths`:
    how many paths one chunk may have. `record_seconds`, `record_memory_bytes`: the limits of decoders and mappers for
    a record; 0: none.
    """

    job: Literal["archive"] = "archive"
    archive: str
    store: str
    # Pairs, because `to_argument` allows no braces within. Not written if there are none.
    requests: tuple[tuple[str, str], ...] = Field(default=(), exclude_if=lambda requests: not requests)
    runs: Annotated[tuple[str, ...], Field(min_length=1)]
    reader: Reader
    memory_bytes: Annotated[int, Field(gt=0)]
    max_paths: Annotated[int, Field(gt=0)] = 10_000
    record_seconds: Annotated[int, Field(ge=0)] = 0
    record_memory_bytes: Annotated[int, Field(ge=0)] = 0
    lost_offsets: LostOffsets
    bad_record: BadRecord

    @classmethod
    def of(cls, archive: "Archive", runs: Sequence[str]) -> Self:
        """The job for some runs of an archive, with its present policies."""
        return cls(
            archive=archive.archive,
            store=archive.store.url,
            requests=tuple(archive.store.requests.items()),
            runs=tuple(runs),
            reader=archive.source.reader,
            memory_bytes=archive.spark.memory_bytes,
            max_paths=archive.store.max_paths,
            record_seconds=archive.spark.record_seconds,
            record_memory_bytes=archive.spark.record_memory_bytes,
            lost_offsets=archive.policies.lost_offsets,
            bad_record=archive.policies.bad_record,
        )

    def options(self, endpoints: Endpoints) -> dict[str, str]:
        """The options of the store. The endpoints may be a person's, who need not know what requests have besides."""
        return {**endpoints.store, **dict(self.requests)}

    def to_argument(self) -> str:
        """The document as one argument: JSON in one line.

        YARN replaces doubled braces in arguments. So all braces but the outer ones, which are in strings, are escaped.
        """
        inner = self.model_dump_json()[1:-1].replace("{", "\\u007b").replace("}", "\\u007d")
        return f"{{{inner}}}"

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Self:
        """The inverse of `to_argument`.

        :raises ConfigError: the arguments are something else.
        """
        expected = "expected one argument, the document of a job `archive` as the DAG's task `archive` writes it"
        if len(arguments) != 1:
            raise ConfigError(f"{expected}; found {len(arguments)}")
        try:
            return cls.model_validate_json(arguments[0])
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'document'}: {e['msg']}" for e in error.errors()[:5])
            raise ConfigError(f"{expected}; found {faults}") from None

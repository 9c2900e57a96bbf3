"""What the driver of the job `archive` must know: a document and, apart from it, the endpoints. Pure.

The task `archive` writes both and the job's main program reads both. The document is an argument, which everybody may
read. The endpoints go the way of `orchestration/handover.py`, addresses and credentials together: on Kubernetes it is
a person who has written them. A job of another name has another document.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, ValidationError

from kafka_archiver.documents import Value
from kafka_archiver.errors import ConfigError
from kafka_archiver.plan import BadRecord

if TYPE_CHECKING:
    # It brings YAML, which the driver does without.
    from kafka_archiver.config import Archive

# The environment variable with the endpoints; and, where the driver runs beside the task, with the file in which it
# leaves what failed, as JSON of kafka_archiver.errors.Failure.
ENDPOINTS, VERDICT = "KAFKA_ARCHIVER_ENDPOINTS", "KAFKA_ARCHIVER_VERDICT"
# auto is native as long as no transform is written in Spark.
Reader = Literal["auto", "spark", "native"]


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Addresses and credentials of the brokers and the store, resolved from Airflow's connections.

    `kafka`: librdkafka's client properties. `store`: the options of :func:`~kafka_archiver.store.open_store`.
    Credentials are kept out of `repr`.
    """

    kafka: Mapping[str, str] = field(repr=False)
    store: Mapping[str, str] = field(repr=False)

    def to_json(self) -> str:
        """For the environment of the Spark job."""
        return json.dumps({"kafka": dict(self.kafka), "store": dict(self.store)})

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """What `to_json`, or a person, wrote.

        :raises ConfigError: it is something else. It holds credentials: the message has nothing of it.
        """
        try:
            found = json.loads(text)
            kafka, store = ({str(k): str(v) for k, v in found[name].items()} for name in ("kafka", "store"))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ConfigError(f"{ENDPOINTS} is not JSON with `kafka` and `store`, each a mapping of strings") from None
        return cls(kafka, store)


class ArchiveJob(Value):
    """Which runs to archive, from where, within which limits, by which policies. Nothing in it is secret.

    `store`: its URL. `runs`: their names in the ledger. `memory_bytes`: what one task holds back before it spills.
    """

    job: Literal["archive"] = "archive"
    archive: str
    store: str
    runs: Annotated[tuple[str, ...], Field(min_length=1)]
    reader: Reader
    memory_bytes: Annotated[int, Field(gt=0)]
    lost_offsets: Literal["fail", "record_loss"]
    bad_record: BadRecord

    @classmethod
    def of(cls, archive: "Archive", runs: Sequence[str]) -> Self:
        """The job for some runs of an archive, by its policies of today."""
        return cls(
            archive=archive.archive,
            store=archive.store.url,
            runs=tuple(runs),
            reader=archive.source.reader,
            memory_bytes=archive.spark.memory_bytes,
            lost_offsets=archive.policies.lost_offsets,
            bad_record=archive.policies.bad_record,
        )

    def to_argument(self) -> str:
        """The document as one argument: JSON in a line.

        YARN replaces doubled braces in arguments, so no brace but the outer ones is there; all others are in strings.
        """
        inner = self.model_dump_json()[1:-1].replace("{", "\\u007b").replace("}", "\\u007d")
        return f"{{{inner}}}"

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Self:
        """What `to_argument` gave.

        :raises ConfigError: it is something else.
        """
        expected = "expected one argument, the document of a job `archive` as the DAG's task `archive` writes it"
        if len(arguments) != 1:
            raise ConfigError(f"{expected}; found {len(arguments)}")
        try:
            return cls.model_validate_json(arguments[0])
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'document'}: {e['msg']}" for e in error.errors()[:5])
            raise ConfigError(f"{expected}; found {faults}") from None

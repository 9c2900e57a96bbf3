"""A request to restore, before anything is planned. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.restore import Partitioner, RestoreLimits, RestoreOptions, RestoreSelection
from kafka_archiver.model.restored_schemas import ReframedColumn

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class RestoreRequest:
    """The request of a person.

    `rename`: new names of topics by their own names. `partitioner`: of all topics. `schema_ids`: as of `RestorePlan`.
    """

    restore: str
    selection: RestoreSelection
    rename: Mapping[str, str] = field(default_factory=dict)
    partitioner: Partitioner = "same"
    options: RestoreOptions = field(default_factory=RestoreOptions)
    limits: RestoreLimits = field(default_factory=RestoreLimits)
    schema_ids: tuple[ReframedColumn, ...] = ()

    def target_of(self, topic: str) -> str:
        """Return the name of the topic that a source topic is written to."""
        return self.rename.get(topic, topic)


def require_name(restore: str) -> None:
    """Check the name of a restore.

    :raises ConfigError: it is none.
    """
    if not _NAME.fullmatch(restore):
        raise ConfigError(
            f"{restore[:100]!r} is not the name of a restore; expected letters, digits, '.', '_' and '-', up to 100"
        )

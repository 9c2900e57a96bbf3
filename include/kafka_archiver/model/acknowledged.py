"""The findings of an archive that a person has accepted, as documents of the ledger. Pure."""

import re
from typing import Literal

from pydantic import Field

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.findings import Finding
from kafka_archiver.values.documents import ArchiveDocument, UtcTime, isoformat

# Begins the name of a failed backfill, rebuild, replay or repair.
FAILED_REQUEST_NAME = "failed-request:"
# A kind, a colon, and a number or a DAG run.
_NAME = re.compile(r"[a-z][a-z-]*(:[^\x00-\x1f\x7f]{1,300})?")
# Characters of a note, and of who wrote it.
MOST = 1000


class Acknowledgement(ArchiveDocument):
    """One decision about one finding. `finding`: its name; `number`: of the decision, from 1, the last one counts.

    `observed`: the finding as it was shown then. `accepted`: False takes an earlier decision back.
    """

    document: Literal["kafka-archiver/acknowledgement"] = "kafka-archiver/acknowledgement"
    finding: str
    number: int
    accepted: bool
    at: UtcTime
    by: str = Field(min_length=1, max_length=MOST)
    note: str = Field(default="", max_length=MOST)
    kind: str
    observed: str

    @property
    def who(self) -> str:
        """Who decided when, and why."""
        return f"{foreign(self.by, MOST)} at {isoformat(self.at)}" + (
            f": {foreign(self.note, MOST)}" if self.note else ""
        )

    def accepts(self, finding: Finding) -> bool:
        """Return True if this accepts a finding: a run that is cleared may fail again for another reason."""
        of_a_run = finding.name.startswith(FAILED_REQUEST_NAME)
        return self.accepted and not (of_a_run and self.observed != finding.text)


def checked_name(name: str) -> str:
    """Return the name of a finding.

    :raises ConfigError: it is none.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name[:100]!r} is not the name of a finding; expected one as `airflow archive acknowledge NAME --list` "
            "shows it, such as dead-letters:12"
        )
    return name

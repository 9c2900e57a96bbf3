"""The document of the job `restore`. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self

from kafka_archiver.jobs.base import StoreJob
from kafka_archiver.model.restore import Inexact

if TYPE_CHECKING:
    # Not at runtime: it imports YAML, which the driver does not need.
    from kafka_archiver.config import Archive

# write: the records, with one writer for each target partition. verify: read them back.
RestoreStep = Literal["write", "verify"]


class RestoreJob(StoreJob):
    """A step of a restore whose plan is frozen. It holds no secrets; the endpoints' brokers are the target's.

    `allow`: what need not be exact, beside what the plan says.
    """

    job: Literal["restore"] = "restore"
    restore: str
    step: RestoreStep
    allow: tuple[Inexact, ...] = ()

    @classmethod
    def of(cls, archive: "Archive", runs: Sequence[str]) -> Self:
        """Return the job for a step.

        :param runs: the restore's name, the step, and what is allowed besides.
        """
        restore, step, *allow = runs
        return cls.model_validate({**cls.of_store(archive), "restore": restore, "step": step, "allow": tuple(allow)})

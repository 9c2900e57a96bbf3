"""Check at planning that the progress says what the last plan of the line says. Pure."""

from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import repair
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.plan import Plan
from kafka_archiver.planning.partition_state import Known


def refuse_changed_progress(last: Plan | None, known: Known) -> None:
    """Refuse a progress by which a run would leave out offsets, or take another log for the archived one.

    :param last: the last plan of the line. Only one that moves the group says where the next run starts.
    :raises IntegrityError: somebody changed the progress, or put an earlier one back in part.
    """
    for part in last.partitions if last and last.moves_group else ():
        progress = known.get(part.name)
        stands = progress and (progress.topic_id, progress.generation, progress.next)
        if last and stands != (part.topic_id, part.generation, part.end):
            raise IntegrityError(
                f"the progress of archive {last.archive} was changed: by run {last.run}, the next one starts at "
                f"{part.end} in generation {part.generation} of {part.name}, id {part.topic_id}; found "
                + ("nothing" if stands is None else "{2} in generation {1}, id {0}".format(*stands)),
                *advise(repair(last.archive), " computes it again"),
            )

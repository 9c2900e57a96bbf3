"""The chunks of a run that Kafka still has."""

from dataclasses import asdict

from kafka_archiver.messages.actions import Advice, advise
from kafka_archiver.messages.advice import choose, clean
from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.archive.logs import Logs


def readable_chunks(plan: Plan, policies: ReadPolicies, logs: Logs, replayed: bool) -> list[Chunk]:
    """Return the chunks, each as far as the log still has it. `finish` accounts for the rest of a shortened chunk."""
    planned = {p.name: p.topic_id for p in plan.partitions}
    readable = []
    for chunk in plan.chunks():
        log = logs.ranges[chunk.name]
        left = Range(max(chunk.start, log.start), min(chunk.end, log.end))
        if left != chunk.range and not replayed and policies.lost_offsets != "record_loss":
            reason, how = _explain_gone(plan, chunk, logs, planned[chunk.name])
            raise PolicyError(reason, advice=how.text, actions=how.actions)
        if left.size:
            readable.append(chunk.model_copy(update={"start": left.start, "end": left.end}))
    return readable


def _explain_gone(plan: Plan, chunk: Chunk, logs: Logs, planned_id: str) -> tuple[str, Advice]:
    """Return what is gone, and what to do."""
    log, topic_id = logs.ranges[chunk.name], logs.ids[chunk.topic]
    if plan.supersedes and not plan.takes_over:
        return (
            f"Kafka has only {log} of {chunk.name}, and not all of {chunk} any more, so run {plan.supersedes} cannot "
            "be rebuilt; its stored objects stay as they are.",
            advise(clean(plan.archive), " removes the attempt"),
        )
    if chunk.name in logs.doubts and chunk.end - 1 not in log:
        reason = logs.doubts[chunk.name]
    elif topic_id == planned_id:
        reason = (
            f"retention removed the records of {chunk} before {log.start} since the plan was made."
            if log.start > chunk.start
            else f"the log of {chunk.name} ends at {log.end} now, before the end of {chunk}: it was truncated."
        )
    else:
        reason = (
            f"topic {chunk.topic} was deleted{' and made again' if topic_id else ''} since run {plan.run} was planned, "
            f"before {chunk} was archived: it was {planned_id} and is {topic_id or 'gone'}."
        )
    return reason, advise(
        "To go on and record them as lost for ever: ",
        choose(plan.archive, "lost_offsets", "record_loss"),
        " (policies.lost_offsets: fail)",
    )


def policies_of_run(present: ReadPolicies, plan: Plan, stored: Manifest | None) -> ReadPolicies:
    """Return the policies for a run: those of its manifest, if it has one.

    A rebuild loses nothing, whatever the policy.

    :param present: the archive's.
    """
    choices = {**asdict(present), **(stored.policies if stored else {})}
    loses_nothing = plan.supersedes and not plan.takes_over
    return ReadPolicies.of({**choices, **({"lost_offsets": "fail"} if loses_nothing else {})})

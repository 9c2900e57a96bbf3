"""Checks the derived documents, proofs and progress, against the committed manifests."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafka_archiver.audit.report import error
from kafka_archiver.messages.actions import Advice, advise
from kafka_archiver.messages.advice import repair
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.object_keys import hour_document, progress_document
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import Contribution, HourProof

Facts = Mapping[str, object]
# Runs that an earlier release settled are not in the last three; the words of a reason are those of its release.
_NOT_COMPARED: dict[str, Any] = {
    **dict.fromkeys(("document", "version", "archive", "partitions"), True),
    "unsure": {"reason"},
    "if_ordered": {"reason"},
    "stretches": {"__all__": {"reason"}},
    **dict.fromkeys(("unsure_by", "lost_by", "dead_letters", "dead_lettered_by"), True),
}
# An hour's proof with the contributions that count, from its pages and from the proof itself.
Proved = tuple[HourProof, Sequence[Contribution]]
_SHOWN = 5


def repair_advice(archive: str) -> Advice:
    """The advice for a wrong derived document."""
    return advise(repair(archive), " computes it again")


def check_hour(
    archive: str, hour: int | None, stored: Proved | None, derived: Sequence[Proved | None]
) -> Iterator[Finding]:
    """Check one hour's proof against the proofs that the manifests give.

    :param derived: the first one counts. The other is also right: an attempt was stopped, and the next run continues
        it.
    """
    stored_facts, derived_facts = facts(stored), [facts(proved) for proved in derived]
    if stored_facts in derived_facts:
        return
    key = hour_document(archive, hour)
    if stored is None:
        yield error("proof-missing", key, "nothing", _say(derived_facts[0]), repair_advice(archive))
    elif derived[0] is None:
        yield error(
            "proof-wrong", key, _say(stored_facts), "no proof: no run concerns this hour", repair_advice(archive)
        )
    else:
        yield error("proof-wrong", key, *_differences(stored_facts, derived_facts[0]), repair_advice(archive))


def facts(proved: Proved | None) -> Facts:
    """All facts of a proof, by name."""
    if proved is None:
        return {}
    proof, runs = proved
    fields = proof.model_dump(
        exclude={"document", "version", "archive", "hour_start", "runs", "pages", "replaced", "reason"}
    )
    return {
        **fields,
        # Its words are those of the release that wrote it.
        "has a reason": proof.reason is not None,
        # Counts, because the dictionaries below would hide a repeated run or object.
        "numbers of its runs": ", ".join(str(c.number) for c in runs),
        "objects of its runs": sum(len(c.objects) for c in runs),
        **{f"rows of run {c.run}": f"{c.rows}{' (late)' if c.late else ''}, {c.number}" for c in runs},
        **{
            f"object {o.key}": f"{o.rows} rows, {o.bytes} bytes, {o.checksum}, of run {c.run}"
            for c in runs
            for o in c.objects
        },
    }


def settled_runs(says: int, last: int, done: int) -> int:
    """The number of settled runs.

    :param says: the number in the progress. It is wrong if line and settled documents are both shorter, or if more
        than one further run has a settled document: then the progress was put back.
    :param last: the last number of the line.
    :param done: the number of runs with a settled document.
    """
    return last if says > last >= done else max(says, min(done - 1, last))


def check_progress(stored: Progress, derived: Progress) -> Iterator[Finding]:
    """Check the progress against the runs that it counts as settled."""
    key, stored_facts, derived_facts = progress_document(stored.archive), _progress(stored), _progress(derived)
    if stored_facts != derived_facts:
        yield error(
            "progress-wrong",
            key,
            *_differences(stored_facts, derived_facts),
            repair_advice(stored.archive),
        )
    elif contradiction := stored.contradiction():
        expected = "a progress that does not contradict itself"
        yield error("progress-wrong", key, contradiction, expected, repair_advice(stored.archive))


def _progress(progress: Progress) -> Facts:
    return {
        **progress.model_dump(exclude=_NOT_COMPARED),
        **{
            f"{p.name} {name}": value
            for p in progress.partitions
            for name, value in p.model_dump(exclude={"topic", "partition"}).items()
        },
    }


def _differences(stored: Facts, expected: Facts) -> tuple[str, str]:
    """The facts that differ: as found, and as expected."""
    names = [n for n in dict.fromkeys([*stored, *expected]) if stored.get(n) != expected.get(n)]
    return (
        _say({n: stored.get(n, "missing") for n in names}),
        _say({n: expected.get(n, "none") for n in names}) + ", as the manifests give it",
    )


def _say(facts: Facts) -> str:
    shown = [f"{name}: {value}" for name, value in list(facts.items())[:_SHOWN]]
    return "; ".join(shown) + (f"; and {len(facts) - _SHOWN} more" if len(facts) > _SHOWN else "")

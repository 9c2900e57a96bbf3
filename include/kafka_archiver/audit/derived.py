"""The derived documents, proofs and progress, against what the committed manifests give."""

from collections.abc import Iterator, Mapping, Sequence

from kafka_archiver.advice import repair
from kafka_archiver.audit.report import Finding, error
from kafka_archiver.keys import hour_document, progress_document
from kafka_archiver.progress import Progress
from kafka_archiver.proof import Contribution, HourProof

Facts = Mapping[str, object]
# An hour's proof with the contributions that count; what is in pages and what is not does not matter.
Proved = tuple[HourProof, Sequence[Contribution]]
_SHOWN = 5


def derived(archive: str) -> str:
    """What to do about a derived document."""
    return f"{repair(archive)} computes it again"


def check_hour(
    archive: str, hour: int | None, stored: Proved | None, given: Sequence[Proved | None]
) -> Iterator[Finding]:
    """One hour's proof against what the manifests give.

    :param given: the first is what counts; with the other, the next run goes on where one was stopped.
    """
    theirs, ours = facts(stored), [facts(one) for one in given]
    if theirs in ours:
        return
    key = hour_document(archive, hour)
    if stored is None:
        yield error("proof-missing", key, "nothing", _say(ours[0]), derived(archive))
    elif given[0] is None:
        yield error("proof-wrong", key, _say(theirs), "no proof, since no run has to do with it", derived(archive))
    else:
        yield error("proof-wrong", key, *_differences(theirs, ours[0]), derived(archive))


def facts(proved: Proved | None) -> Facts:
    """All that a proof says, by what it is."""
    if proved is None:
        return {}
    proof, runs = proved
    fields = proof.model_dump(exclude={"document", "version", "archive", "hour_start", "runs", "pages", "replaced"})
    return {
        **fields,
        # Whatever is named twice is one name below.
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
    """How many runs are settled.

    :param says: by the progress. That is not so where neither the line nor what settling leaves goes so far, nor where
        more runs than the one that may be at it say what settling them did: then it was put back.
    :param last: where the line ends.
    :param done: how many runs say what settling them did.
    """
    return last if says > last >= done else max(says, min(done - 1, last))


def check_progress(stored: Progress, given: Progress) -> Iterator[Finding]:
    """The progress against what the runs give that it says are settled."""
    theirs, ours = _progress(stored), _progress(given)
    if theirs != ours:
        yield error(
            "progress-wrong", progress_document(stored.archive), *_differences(theirs, ours), derived(stored.archive)
        )


def _progress(progress: Progress) -> Facts:
    return {
        **progress.model_dump(exclude={"document", "version", "archive", "partitions"}),
        **{
            f"{p.name} {name}": value
            for p in progress.partitions
            for name, value in p.model_dump(exclude={"topic", "partition"}).items()
        },
    }


def _differences(found: Facts, expected: Facts) -> tuple[str, str]:
    """What is found and what is expected of all that differs."""
    names = [n for n in dict.fromkeys([*found, *expected]) if found.get(n) != expected.get(n)]
    return (
        _say({n: found.get(n, "missing") for n in names}),
        _say({n: expected.get(n, "none") for n in names}) + ", as the manifests give it",
    )


def _say(facts: Facts) -> str:
    shown = [f"{name}: {value}" for name, value in list(facts.items())[:_SHOWN]]
    return "; ".join(shown) + (f"; and {len(facts) - _SHOWN} more" if len(facts) > _SHOWN else "")

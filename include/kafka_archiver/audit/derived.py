"""The derived documents, proofs and progress, against what the committed manifests give."""

from collections.abc import Iterator, Mapping, Sequence

from kafka_archiver.audit.report import Finding, error, warning
from kafka_archiver.keys import hour_document, progress_document
from kafka_archiver.proof import HourProof, Progress

DERIVED = "Restore it from a version or copy of the bucket"
Facts = Mapping[str, object]
_SHOWN = 5


def check_hour(
    archive: str, hour: int | None, stored: HourProof | None, given: Sequence[HourProof | None]
) -> Iterator[Finding]:
    """One hour's proof against what the manifests give.

    :param given: the first is what counts; with one of the others, the next run goes on where one was stopped.
    """
    if stored in given:
        return
    key, expected = hour_document(archive, hour), given[0]
    if stored is None:
        yield error("proof-missing", key, "nothing", _say(_facts(expected)), DERIVED)
    elif expected is None:
        yield error("proof-wrong", key, _say(_facts(stored)), "no proof, since no run has to do with it", DERIVED)
    elif all(_facts(stored) != _facts(proof) for proof in given):
        yield error("proof-wrong", key, *_differences(_facts(stored), _facts(expected)), DERIVED)
    elif all(_history(stored) != _history(proof) for proof in given):
        yield warning(
            "proof-history",
            key,
            *_differences(_history(stored), _history(expected)),
            "The hour has what it should; only which run closed it or came late differs from the order of the commits",
        )


def _facts(proof: HourProof | None) -> Facts:
    """What is the same in whatever order runs are settled."""
    if proof is None:
        return {}
    return {
        "status": proof.status,
        "rows": proof.rows,
        "bytes": proof.bytes,
        "late_rows less those of late runs": proof.late_rows - sum(c.rows for c in proof.runs if c.late),
        **{f"rows of run {c.run}": c.rows for c in proof.runs},
        **{
            f"object {o.key}": f"{o.rows} rows, {o.bytes} bytes, {o.checksum}, of run {c.run}"
            for c in proof.runs
            for o in c.objects
        },
    }


def _history(proof: HourProof | None) -> Facts:
    if proof is None:
        return {}
    return {
        "complete_as_of": proof.complete_as_of,
        "closed_by": proof.closed_by,
        "late runs": [c.run for c in proof.runs if c.late],
    }


def check_progress(stored: Progress, given: Progress) -> Iterator[Finding]:
    """The progress against what the runs give that it says are settled."""
    theirs, ours = _progress(stored), _progress(given)
    if theirs != ours:
        yield error("progress-wrong", progress_document(stored.archive), *_differences(theirs, ours), DERIVED)


def _progress(progress: Progress) -> Facts:
    fields = ("complete_from", "closed_until", "open_hours", "lost")
    return {
        **{name: getattr(progress, name) for name in fields},
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

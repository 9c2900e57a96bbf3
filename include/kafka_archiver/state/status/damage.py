"""The damage that the last audit found."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel
from pydantic_core import from_json

from kafka_archiver.audit.report import Counts, Mended
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.advice import acknowledge, audit_again, audit_dag_id, repair, unpause
from kafka_archiver.messages.policies import AT_BROKERS
from kafka_archiver.messages.wording import count
from kafka_archiver.model.findings import Finding, problem, warning
from kafka_archiver.model.object_keys import audit_document
from kafka_archiver.values.documents import UtcTime, isoformat

# Bytes of a report that are read: the verdict, and errors before warnings.
HEAD = 1 << 18
NEVER_AUDITED = "never audited"
# What is wrong with an object, by the kind of the finding.
_WORDS = {
    "object-missing": "missing",
    "object-changed": "changed",
    "object-rewritten": "rewritten",
    "content-wrong": "wrong inside",
}


class ReportHead(BaseModel):
    """The beginning of a report; of the last finding perhaps only a part. `cut`: there is more."""

    document: Literal["kafka-archiver/audit"]
    audited_at: UtcTime
    deep: bool
    verdict: Literal["clean", "damaged"]
    counts: dict[str, Any] = {}
    mended: Mended | None = None
    findings: tuple[dict[str, Any], ...] = ()
    cut: bool = False

    @property
    def counted(self) -> Counts | None:
        """The figures; None if only a part of them was read."""
        try:
            return Counts.model_validate(self.counts)
        except ValueError:
            return None

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The damage in the store; the present state of the brokers is better known from the brokers."""
        return [
            f for f in self.findings if f.get("severity") == "error" and "where" in f and f["kind"] not in AT_BROKERS
        ]

    @property
    def damaged(self) -> bool:
        """True if something that is stored is damaged. Older releases counted findings at the brokers, too."""
        return self.verdict == "damaged" and (bool(self.errors) or self.cut)


def _of_kind(kind: str, number: int, cut: bool) -> str:
    """Return the number of findings of a kind in words. `cut`: there may be more."""
    words, more = _WORDS.get(kind), " or more" * cut
    if words is None:
        return f"{number:,}{more} × {kind}"
    is_are = "is" if number == 1 and not cut else "are"
    return f"{f'{number:,} or more objects' if cut else count(number, 'object')} {is_are} {words}"


def read_head(ledger: Ledger) -> ReportHead | None:
    """Read the beginning of the last audit's report. One request, whatever the length of the report.

    :raises ValueError: it cannot be read.
    """
    data = ledger.store.read(audit_document(ledger.archive), 0, HEAD)
    if data is None:
        return None
    cut = len(data) == HEAD
    return ReportHead.model_validate(from_json(data, allow_partial=cut)).model_copy(update={"cut": cut})


def of_audit(ledger: Ledger, settled: int, is_paused: bool = False) -> Iterator[Finding]:
    """Yield the damage in the report of the last audit, or that there is none. One request, whatever its length.

    What that audit found at the brokers is left out: `of_brokers` has their present state.

    :param settled: the number of settled runs.
    :param is_paused: the DAG that audits is paused.
    """
    archive, key = ledger.archive, audit_document(ledger.archive)
    try:
        head = read_head(ledger)
    except ValueError:
        yield warning("no report", f"the report of the last audit, {key}, cannot be read", audit_again(archive))
        return
    if head is None:
        if settled:
            yield warning(
                NEVER_AUDITED,
                "no audit has ever compared the store with the ledger"
                + (f", and DAG {audit_dag_id(archive)} is paused" if is_paused else ""),
                *([unpause(audit_dag_id(archive))] if is_paused else []),
                audit_again(archive),
                acknowledge(archive, "never-audited"),
                name="never-audited",
            )
        return
    errors, cut = head.errors, head.cut
    if head.damaged:
        kinds = Counter(f["kind"] for f in errors)
        named = ", ".join(_of_kind(kind, number, cut) for kind, number in kinds.items())
        first = f": {named}: {errors[0]['where']}{' and others' * (cut or len(errors) > 1)}" if errors else ""
        since = f"; {head.mended}" if head.mended else ""
        yield problem(
            "damaged",
            f"the audit at {isoformat(head.audited_at)} found the archive damaged{first}{since}",
            repair(archive, deep=head.deep),
            audit_again(archive, head.deep),
        )

"""The damage that the last audit found."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel
from pydantic_core import from_json

from kafka_archiver.advice import audit_again
from kafka_archiver.audit.live import LIVE
from kafka_archiver.documents import UtcTime, isoformat
from kafka_archiver.keys import audit_document
from kafka_archiver.ledger import Ledger
from kafka_archiver.steps.status.trouble import Trouble, problem, warning

# Bytes of a report that are read: the verdict, and errors before warnings.
HEAD = 1 << 18


class _Head(BaseModel):
    """The beginning of a report; of the last finding perhaps only a part."""

    document: Literal["kafka-archiver/audit"]
    audited_at: UtcTime
    deep: bool
    verdict: Literal["clean", "damaged"]
    findings: tuple[dict[str, Any], ...] = ()


def of_audit(ledger: Ledger) -> Iterator[Trouble]:
    """The damage in the report of the last audit. One request, whatever the length of the report.

    What that audit found at the brokers is left out: `of_brokers` has their present state.
    """
    archive, key = ledger.archive, audit_document(ledger.archive)
    data = ledger.store.read(key, 0, HEAD)
    if data is None:
        return
    cut = len(data) == HEAD
    try:
        head = _Head.model_validate(from_json(data, allow_partial=cut))
    except ValueError:
        yield warning("no report", f"the report of the last audit, {key}, cannot be read", audit_again(archive))
        return
    errors = [f for f in head.findings if f.get("severity") == "error" and "where" in f and f["kind"] not in LIVE]
    if head.verdict == "damaged" and (errors or cut):
        kinds = Counter(f["kind"] for f in errors)
        named = ", ".join(f"{number:,} × {kind}" for kind, number in kinds.items())
        first = f": {named}{' or more' * cut}, the first {errors[0]['where']}" if errors else ""
        yield problem(
            "damaged",
            f"the audit at {isoformat(head.audited_at)} found the archive damaged{first}",
            f"airflow archive repair {archive}{' --deep' * head.deep}",
            audit_again(archive, head.deep),
        )

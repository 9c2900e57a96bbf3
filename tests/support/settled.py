"""The part of an archive that close_hours keeps, without a store."""

from datetime import timedelta

from kafka_archiver.model.manifest import Manifest, Outcome
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import HourProof
from kafka_archiver.model.settling import Settling
from tests.support.plans import HOUR, manifest

Proofs = dict[int | None, HourProof]


class Ledger:
    """The documents that close_hours keeps, without a store."""

    def __init__(self) -> None:
        self.progress = Progress(archive="orders")
        self.proofs: Proofs = {}
        self.said: list[tuple[tuple[int, int], ...]] = []
        self.written: dict[str, Manifest] = {}
        self.stretches: list[tuple[tuple[int, int], ...]] = []

    def settle(self, of: Plan, hours: list[int | None] | Manifest = (), outcome: Outcome = "committed") -> Proofs:  # type: ignore[assignment]
        written = hours if isinstance(hours, Manifest) else manifest(of, hours)
        self.written[of.run] = written
        replaced = self.written.get(of.supersedes or "")
        ended = of.planned_at + timedelta(minutes=1)
        settling = Settling(self.progress, of, outcome, written if outcome == "committed" else None, replaced, ended)
        considered = {*settling.hours, *(h for h in self.proofs if settling.may_change(h))}
        for hour in considered:
            known = settling.known(hour, self.proofs.get(hour))
            gone = next((c for c in known.runs if c.run == of.supersedes), None) if known else None
            proof = settling.prove(hour, known, gone)
            if proof is known and hour not in self.proofs:
                continue
            self.proofs[hour] = proof
            assert settling.prove(hour, self.proofs[hour], None) is self.proofs[hour], "twice is once"
        done = settling.done(self.proofs[h] for h in considered if h in self.proofs)
        self.said.append(done.closed)
        self.stretches.append(done.stretches)
        self.progress = settling.after
        return self.proofs

    def status(self, hour: int) -> str | None:
        return self.proofs[HOUR + hour].status if HOUR + hour in self.proofs else None

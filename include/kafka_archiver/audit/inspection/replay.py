"""Compute the proofs and the progress from the ended runs, to compare them with the stored ones."""

from kafka_archiver.audit.inspection.promise_table import PromiseTable
from kafka_archiver.model.manifest import Commit, Manifest, Settled
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.settling import Settling


class Replay:
    """Settles runs again, in the order of the line, as `close_hours` did. `progress`: after the last run."""

    def __init__(self, archive: str, table: PromiseTable) -> None:
        self.progress = Progress(archive=archive)
        self._table = table

    def settle(
        self, plan: Plan, commit: Commit, manifest: Manifest | None, superseded: Manifest | None, ahead: bool
    ) -> Settled:
        """Settle the next run. Returns what settling it does.

        :param ahead: the run is not settled yet, but some of its proofs may be written.
        """
        settling = Settling(self.progress, plan, commit.outcome, manifest, superseded, commit.committed_at)
        hours = set(settling.hours)
        if settling.reaches:
            hours |= {hour for hour in self._table.hours() if settling.may_change(hour)}
        after = []
        for hour in hours:
            own = self._table.proof(hour)
            known = settling.known(hour, own)
            replaced = self._table.contribution(hour, plan.supersedes) if plan.supersedes else None
            proof = settling.prove(hour, known, replaced)
            if proof is not known:
                self._table.prove(proof, ahead)
            if own or proof is not known:
                after.append(proof)
        if not ahead:
            self.progress = settling.after
        return settling.done(after)

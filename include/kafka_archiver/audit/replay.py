"""The proofs and the progress that the committed manifests give: what the derived documents should say."""

from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import Plan
from kafka_archiver.proof import HourProof, Progress, hours_to_prove, prove


class Replay:
    """Settles runs again, in memory, as `close_hours` did. Runs come in the order in which they were settled.

    `proofs`: of each hour what it was after the last settled run, and after each run since that is committed but not
    settled yet: it may have been stopped before or after it wrote the hour. `order`: the runs taken in.
    """

    def __init__(self, archive: str) -> None:
        self.progress = Progress(archive=archive)
        self.proofs: dict[int | None, list[HourProof | None]] = {}
        self.order: list[str] = []
        self._superseded: dict[str, Manifest] = {}
        self._ahead: Progress | None = None

    def keep(self, manifest: Manifest) -> None:
        """The manifest of a run that a later one supersedes."""
        self._superseded[manifest.run] = manifest

    def settle(self, plan: Plan, manifest: Manifest) -> None:
        """Take in one more run that is settled."""
        self.progress = self._take(self.progress, plan, manifest, is_settled=True)

    def go_on(self, plan: Plan, manifest: Manifest) -> None:
        """Take in one more run that is committed and not settled, once all others have been; the progress stays."""
        self._ahead = self._take(self._ahead or self.progress, plan, manifest, is_settled=False)

    def _take(self, progress: Progress, plan: Plan, manifest: Manifest, is_settled: bool) -> Progress:
        hours = hours_to_prove(progress, plan, manifest, self._superseded.get(plan.supersedes or ""))
        opened = []
        self.order.append(plan.run)
        for hour, verdict in hours.items():
            known = self.proofs.get(hour, [None])
            proof = prove(hour, known[-1], plan, manifest, verdict)
            self.proofs[hour] = [proof] if is_settled else [*known, proof]
            if hour is not None and proof.status == "open":
                opened.append(hour)
        # Without the list of runs, which would be copied for each of them.
        return progress.after(plan, manifest, opened).model_copy(update={"runs": ()})

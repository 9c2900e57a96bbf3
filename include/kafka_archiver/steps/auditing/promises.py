"""What the committed manifests promise, taken in one after the other."""

from collections.abc import Iterable, Iterator, Mapping

from kafka_archiver.audit.documents import Run, changed_documents, current, in_order, superseded
from kafka_archiver.audit.objects import Explained
from kafka_archiver.audit.replay import Replay
from kafka_archiver.audit.report import Finding
from kafka_archiver.audit.tiling import check_lost
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import Plan


class Promises:
    """All that the manifests say. They are taken in one at a time, and not kept.

    `explained`: the objects; `replay`: the proofs and the progress; `broken`: runs whose documents are not those that
    were committed, without which nobody knows what proofs and progress should be; `rows`, `lost`: of the runs that
    count, which are in `counting`, by their interval.
    """

    def __init__(self, archive: str, runs: Mapping[str, Run], settled: set[str]) -> None:
        self._archive, self._runs, self._settled = archive, runs, settled
        self._superseded = superseded(runs)
        self._ordered = [run for run, _, _ in in_order(runs.values())]
        self.counting = current(runs.values())
        self.explained = Explained()
        self.replay = Replay(archive)
        self.broken = settled - {run.name for run in self._ordered}
        self.rows = self.lost = 0
        # Their objects may be there, or not.
        self.explained.unfinished += [r.plan for r in runs.values() if r.plan and not r.committed]

    def order(self) -> list[Run]:
        """The committed runs in the order in which they have to be taken in: as they were settled."""
        known = {run.name for run in self._ordered}
        final = [*self._ordered, *(r for r in self._runs.values() if r.committed and r.name not in known)]
        return sorted(final, key=lambda run: run.name not in self._settled)

    def take(self, run: Run, manifest: Manifest | None) -> Iterator[Finding]:
        """Take in one run."""
        wrong = list(changed_documents(self._archive, run, manifest))
        yield from wrong
        if manifest is None and run.plan:
            # Nobody knows which of these it promised; that it is gone is a finding already.
            self.explained.unfinished.append(run.plan)
        if wrong or manifest is None or run.plan is None:
            self.broken.add(run.name)
        elif not self.broken:
            self._settle(run.plan, manifest)
        if manifest and self.counting.get(run.interval) is run:
            self.rows += manifest.rows
            self.lost += manifest.account["lost"]
            yield from self.explained.promise(manifest)
            yield from check_lost(manifest)
        elif manifest:
            self._replaced(manifest)

    def _settle(self, plan: Plan, manifest: Manifest) -> None:
        if plan.run in self._superseded:
            self.replay.keep(manifest)
        if plan.run in self._settled:
            self.replay.settle(plan, manifest)
        else:
            self.replay.go_on(plan, manifest)

    def _replaced(self, manifest: Manifest) -> None:
        keys = [o.key for o in manifest.stored]
        by = self._superseded.get(manifest.run)
        if by and by.plan and by.name in self._settled and not by.plan.keep_superseded:
            self.explained.superseded.update(dict.fromkeys(keys, by.name))
        else:
            self.explained.keys.update(keys)

    def plans(self) -> Iterator[tuple[Plan, bool]]:
        """The plans that have to tile the logs, each with whether it is a scheduled run's."""
        counting: Iterable[Run] = self.counting.values()
        begun = (r for r in self._runs.values() if not r.committed and r.plan and r.plan.supersedes is None)
        for plan in (r.plan for r in [*counting, *begun]):
            if plan:
                # A rebuild is what the run was that it takes the place of.
                first = self._runs.get(plan.interval.id)
                root = first.plan if plan.supersedes and first and first.plan else plan
                yield plan, root.moves_group

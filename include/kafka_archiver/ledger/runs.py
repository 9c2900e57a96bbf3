"""The documents of runs. Ends and manifests are written once; an intent replaces only the version that was read."""

from kafka_archiver.ledger.documents import Documents, Stored
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import repair
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.manifest import Commit, Intent, Manifest, Settled
from kafka_archiver.model.object_keys import revision_in, run_name, run_prefix, split_run, split_run_document
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.set_aside import SetAside
from kafka_archiver.values.intervals import run_id


class RunDocuments(Documents):
    """The documents of each run."""

    __slots__ = ()

    def plan(self, run: str) -> Plan | None:
        """The plan of a run; None when it has none, or only in the line so far."""
        return self._read(Plan, self._run_key(run, "plan"), run=run)

    def file_plan(self, plan: Plan) -> None:
        """Write a plan of the line beside the other documents of its run, if it is not there."""
        if not self.store.create(self._run_key(plan.run, "plan"), self._bytes(plan)):
            known = self.plan(plan.run) or self._gone(self._run_key(plan.run, "plan"))
            if known != plan:
                raise IntegrityError(
                    f"{self._name(self._run_key(plan.run, 'plan'))} is not the plan at place {plan.number} of the "
                    "line: somebody changed it. Restore it from the document in the line"
                )

    def intent(self, run: str) -> Stored[Intent]:
        """Return the objects that attempts of a run may have made visible."""
        return self._version(Intent, self._run_key(run, "intent"), run)

    def put_intent(self, intent: Intent, before: Stored[Intent]) -> Stored[Intent] | None:
        """Write a run's intent in place of the one that was read. None when another attempt was faster."""
        key, data = self._run_key(intent.run, "intent"), self._bytes(intent)
        if not self._replace(key, data, before):
            return None
        stored = self.store.version(key)
        # Compare bytes: for half a million objects a second parsed document would take gigabytes.
        return Stored(intent, stored.etag) if stored and stored.data == data else None

    def set_aside(self, run: str) -> Stored[SetAside]:
        """Return what attempts of a run leave out."""
        return self._version(SetAside, self._run_key(run, "set_aside"), run)

    def put_set_aside(self, aside: SetAside, before: Stored[SetAside]) -> bool:
        """Write what attempts of a run leave out, in place of what was read. False when another process was faster."""
        return self._replace(self._run_key(aside.run, "set_aside"), self._bytes(aside), before)

    def manifest(self, run: str) -> Manifest | None:
        """Return the manifest of a run; None when it has not finished writing."""
        return self._read(Manifest, self._run_key(run, "manifest"), run=run)

    def sound_manifest(self, run: str, commit: Commit | None = None) -> Manifest | None:
        """The manifest of a run: of a final run only as it was committed; None when the run has none.

        :param commit: how the run ended, if the caller has read it.
        :raises IntegrityError: the manifest of a final run is gone, or is not the one that was committed.
        """
        commit, manifest = commit or self.commit(run), self.manifest(run)
        if commit and commit.outcome == "committed" and (manifest is None or manifest.digest != commit.manifest_digest):
            raise IntegrityError(
                f"the manifest of run {run} of archive {self.archive} is "
                f"{'gone' if manifest is None else 'not the one that was committed'} "
                f"({(commit.manifest_digest or '')[:12]}).",
                *advise(
                    repair(self.archive),
                    " restores it where the run's other documents have all of it; else restore it from a version or "
                    "copy of the store",
                ),
            )
        return manifest

    def create_manifest(self, manifest: Manifest) -> Manifest:
        """Store a run's manifest if it has none. Returns the manifest that counts: this one, or the first one."""
        return self._first(self._run_key(manifest.run, "manifest"), manifest, manifest.run)

    def commit(self, run: str) -> Commit | None:
        """Return the end of a run; None when it has not ended."""
        return self._read(Commit, self._run_key(run, "commit"), run=run)

    def is_final(self, run: str) -> bool:
        commit = self.commit(run)
        return commit is not None and commit.outcome == "committed"

    def create_commit(self, commit: Commit) -> Commit:
        """End a run. Returns the end that counts: this one, or the first one."""
        return self._first(self._run_key(commit.run, "commit"), commit, commit.run)

    def settled(self, run: str) -> Settled | None:
        """Return the record of settling a run; None when it is not settled."""
        return self._read(Settled, self._run_key(run, "settled"), run=run)

    def create_settled(self, settled: Settled) -> None:
        """Write what settling a run does, if it is not written yet."""
        self.store.create(self._run_key(settled.run, "settled"), self._bytes(settled))

    def last_committed(self, interval: str) -> str | None:
        """The highest committed revision of an interval's run; None: none is committed."""
        last, revision = None, 0
        # Work on a revision begins only when the one before it has ended.
        while commit := self.commit(run_name(interval, revision)):
            last = commit.run if commit.outcome == "committed" else last
            revision += 1
        return last

    def current(self, interval: str) -> Plan | None:
        """The plan that counts for an interval: the last committed revision's, else the run's own."""
        return self.plan(self.last_committed(interval) or interval)

    def written_as(self, plan: Plan) -> Plan:
        """The plan whose objects a run's attempts write: for a repair, the plan of the repaired run."""
        while plan.origin == "repair":
            plan = self.plan(plan.supersedes or "") or self._gone(self._run_key(plan.supersedes or "", "plan"))
        return plan

    def writer_of(self, plan: Plan, key: str) -> Plan:
        """The plan that wrote an object of a run's manifest: the revision that the object's name has."""
        revision = revision_in(key)
        if revision == plan.revision:
            return plan
        run = run_name(plan.interval.id, revision)
        return self.plan(run) or self._gone(self._run_key(run, "plan"))

    def superseded_by(self, run: str) -> str | None:
        """The revision that is committed in place of a run; None when the run itself counts."""
        last = self.last_committed(run_id(split_run(run)[0]))
        return last if last and split_run(last) > split_run(run) else None

    def runs(self, interval: str = "") -> dict[str, frozenset[str]]:
        """Every run, oldest interval first, with the names of its documents. Lists the store: for reports only.

        :param interval: only the revisions of this interval's run.
        """
        documents: dict[str, set[str]] = {}
        for stat in self.store.list(f"{run_prefix(self.archive)}{interval}"):
            if place := split_run_document(self.archive, stat.key):
                documents.setdefault(place[0], set()).add(place[1])
        return {run: frozenset(documents[run]) for run in sorted(documents, key=split_run)}

"""The ledger: an archive's documents on its store.

Plans, manifests and commits are written once; intents, proofs and the progress can be computed again and replace what
was there.
"""

from dataclasses import dataclass
from typing import NoReturn, TypeVar

from kafka_archiver.errors import DocumentError, IntegrityError, TransientError
from kafka_archiver.intervals import run_id
from kafka_archiver.keys import (
    claim_document,
    hour_document,
    ledger_prefix,
    progress_document,
    run_document,
    run_prefix,
    split_hour_document,
    split_run,
    split_run_document,
)
from kafka_archiver.manifest import Claim, Commit, Intent, Manifest
from kafka_archiver.plan import Plan
from kafka_archiver.proof import HourProof, Progress
from kafka_archiver.store import Store

AnyDocument = TypeVar("AnyDocument", Plan, Intent, Manifest, Commit, HourProof, Progress)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The documents of one archive.

    Whatever is read has been checked to be the document its key promises.

    :raises DocumentError: from every method that reads: what is stored is damaged, or another document.
    """

    store: Store
    archive: str

    def plan(self, run: str) -> Plan | None:
        """The plan of a run; None when it has none."""
        return self._read(Plan, self._run_key(run, "plan"), run=run)

    def create_plan(self, plan: Plan) -> Plan:
        """Store a run's plan where it has none. Returns the plan that counts: this one, or the one that was first."""
        if self.store.create(self._run_key(plan.run, "plan"), self._bytes(plan)):
            return plan
        return self.plan(plan.run) or self._vanished(plan.run, "plan")

    def intent(self, run: str) -> Intent | None:
        """The keys that attempts of a run may have made visible."""
        return self._read(Intent, self._run_key(run, "intent"), run=run)

    def put_intent(self, intent: Intent) -> None:
        """Write a run's intent, replacing an earlier one."""
        self.store.put(self._run_key(intent.run, "intent"), self._bytes(intent))

    def manifest(self, run: str) -> Manifest | None:
        """What a run wrote; None when it has not finished writing."""
        return self._read(Manifest, self._run_key(run, "manifest"), run=run)

    def create_manifest(self, manifest: Manifest) -> Manifest:
        """Store a run's manifest where it has none. Returns the one that counts: this, or the one that was first."""
        if self.store.create(self._run_key(manifest.run, "manifest"), self._bytes(manifest)):
            return manifest
        return self.manifest(manifest.run) or self._vanished(manifest.run, "manifest")

    def commit(self, run: str) -> Commit | None:
        """The record that a run is final; None when it is not."""
        return self._read(Commit, self._run_key(run, "commit"), run=run)

    def create_commit(self, commit: Commit) -> Commit:
        """Make a run final. Returns the commit that counts: this one, or the one that was first.

        :raises IntegrityError: the run is committed already with another manifest.
        """
        key = self._run_key(commit.run, "commit")
        if self.store.create(key, self._bytes(commit)):
            return commit
        first = self.commit(commit.run) or self._vanished(commit.run, "commit")
        if first.manifest_digest != commit.manifest_digest:
            raise IntegrityError(
                f"{self._name(key)} commits manifest {first.manifest_digest[:12]}, this attempt wrote "
                f"{commit.manifest_digest[:12]}: a run that is final must not change. "
                "`airflow archive show` lists what the committed manifest promises"
            )
        return first

    def runs(self, interval: str = "") -> dict[str, frozenset[str]]:
        """Every run, oldest first, with the names of its documents (plan, intent, manifest, commit).

        :param interval: only the revisions of this interval's run.
        """
        found: dict[str, set[str]] = {}
        for stat in self.store.list(f"{run_prefix(self.archive)}{interval}"):
            if place := split_run_document(self.archive, stat.key):
                found.setdefault(place[0], set()).add(place[1])
        return {run: frozenset(found[run]) for run in sorted(found, key=split_run)}

    def current(self, interval: str) -> Plan | None:
        """The plan that counts for an interval: the last revision that is committed, else the run's own."""
        return self.plan(self._last_committed(interval) or interval)

    def superseded_by(self, run: str) -> str | None:
        """The revision that is committed in place of a run; None when the run itself counts."""
        last = self._last_committed(run_id(split_run(run)[0]))
        return last if last and split_run(last) > split_run(run) else None

    def _last_committed(self, interval: str) -> str | None:
        """The highest revision of an interval's run that is committed."""
        return max(
            (run for run, found in self.runs(interval).items() if "commit" in found), key=split_run, default=None
        )

    def claim(self, topic: str) -> str:
        """Take a topic's place in the store. Returns the archive that has it: this one, or the one that was first."""
        key = claim_document(topic)
        if self.store.create(key, Claim(archive=self.archive, topic=topic).to_json()):
            return self.archive
        return self.claimed(topic) or self._gone(key)

    def claimed(self, topic: str) -> str | None:
        """Which archive has a topic here; None when none has."""
        key = claim_document(topic)
        data = self.store.get(key)
        return None if data is None else Claim.from_json(data, self._name(key)).archive

    def hour(self, hour: int | None) -> HourProof | None:
        """The proof of an hour (whole hours since 1970; None: of the records without a time)."""
        key = hour_document(self.archive, hour)
        proof = self._read(HourProof, key)
        if proof and proof.hour != hour:
            raise self._foreign(key, "hour_start", proof.hour_start, f"hour {hour}")
        return proof

    def put_hour(self, proof: HourProof) -> None:
        """Write an hour's proof, replacing an earlier one."""
        self.store.put(hour_document(self.archive, proof.hour), self._bytes(proof))

    def hours(self) -> tuple[int | None, ...]:
        """The hours that have a proof, oldest first; None, for the records without a time, last."""
        listed = self.store.list(f"{ledger_prefix(self.archive)}hours/")
        found = [place[0] for stat in listed if (place := split_hour_document(self.archive, stat.key))]
        return tuple(sorted(found, key=lambda hour: (hour is None, hour)))

    def progress(self) -> Progress | None:
        """The summary of all settled runs; None before the first."""
        return self._read(Progress, progress_document(self.archive))

    def put_progress(self, progress: Progress) -> None:
        """Write the summary, replacing an earlier one."""
        self.store.put(progress_document(self.archive), self._bytes(progress))

    def _run_key(self, run: str, name: str) -> str:
        return run_document(self.archive, run, name)

    def _name(self, key: str) -> str:
        return f"{self.store.url}/{key}"

    def _bytes(self, document: AnyDocument) -> bytes:
        if document.archive != self.archive:
            raise DocumentError(
                f"a document of archive {document.archive!r} does not belong in the ledger of {self.archive!r}"
            )
        return document.to_json()

    def _read(self, kind: type[AnyDocument], key: str, run: str | None = None) -> AnyDocument | None:
        data = self.store.get(key)
        if data is None:
            return None
        document = kind.from_json(data, self._name(key))
        if document.archive != self.archive:
            raise self._foreign(key, "archive", document.archive, self.archive)
        if isinstance(document, Plan | Intent | Manifest | Commit) and document.run != run:
            raise self._foreign(key, "run", document.run, run)
        return document

    def _foreign(self, key: str, field: str, found: object, expected: object) -> DocumentError:
        return DocumentError(
            f"{self._name(key)} is not the document its key promises: found {field} {found}, expected {expected}. "
            "It was copied or moved there; restore the right one from a backup of the store"
        )

    def _vanished(self, run: str, name: str) -> NoReturn:
        self._gone(self._run_key(run, name))

    def _gone(self, key: str) -> NoReturn:
        raise TransientError(f"{self._name(key)} was there when it was to be written, and is gone now")

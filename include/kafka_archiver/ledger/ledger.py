"""The ledger: an archive's documents on its store.

The plans stand in one line; each is created only where no document is. Ends of runs and manifests are written once.
Intents, proofs and the progress replace only the version that was read.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from os.path import commonprefix
from typing import TYPE_CHECKING, Generic, NamedTuple, NoReturn, TypeVar

from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import audit, repair
from kafka_archiver.messages.errors import ConfigError, DocumentError, IntegrityError, TransientError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.acknowledged import Acknowledgement
from kafka_archiver.model.data_keys import DataKey, DataKeyDocument
from kafka_archiver.model.keys import (
    SEALED,
    acknowledged_document,
    acknowledged_prefix,
    claim_document,
    hour_document,
    key_document,
    ledger_prefix,
    line_document,
    progress_document,
    revision_in,
    run_document,
    run_name,
    run_prefix,
    schema_document,
    split_acknowledged_document,
    split_hour_document,
    split_key_document,
    split_line_document,
    split_run,
    split_run_document,
)
from kafka_archiver.model.manifest import Claim, Commit, Intent, Manifest, Settled
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import Contribution, HourPage, HourProof, counting, proof_in_a_stretch
from kafka_archiver.model.schemas import Schema, SchemaDocument
from kafka_archiver.model.set_aside import SetAside
from kafka_archiver.store import Store
from kafka_archiver.values.intervals import run_id, to_hour

if TYPE_CHECKING:
    # Not at runtime: without encryption nobody needs the library.
    from kafka_archiver.encryption import Keyring

AnyDocument = TypeVar(
    "AnyDocument",
    Plan,
    SetAside,
    Intent,
    Manifest,
    Commit,
    Settled,
    HourProof,
    HourPage,
    Progress,
    SchemaDocument,
    DataKeyDocument,
    Acknowledgement,
)


class Stored(NamedTuple, Generic[AnyDocument]):
    """A document as it was read, and its ETag: it may be replaced only while it is still the same."""

    document: AnyDocument | None
    etag: str | None


@dataclass(frozen=True, slots=True)
class Ledger:
    """The documents of one archive.

    Each document that is read is checked to be the document that its key promises.

    `keyring`: the master keys, if the archive encrypts its objects before it sends them.

    :raises DocumentError: in every method that reads: the document is damaged, or another document.
    """

    store: Store
    archive: str
    keyring: "Keyring | None" = field(default=None, repr=False)

    # The line.

    def planned(self, number: int) -> Plan | None:
        """The plan at this place of the line; None when the line does not reach so far."""
        key = line_document(self.archive, number)
        plan = self._read(Plan, key)
        if plan and plan.number != number:
            raise self._foreign(key, "number", plan.number, number)
        return plan

    def following(self, number: int) -> Iterator[Plan]:
        """The plans behind this place of the line, one request each."""
        while plan := self.planned(number + 1):
            yield plan
            number = plan.number

    def numbers(self) -> list[int]:
        """The places of the line that have a document. Lists the store: for audits and repairs only."""
        listed = self.store.list(f"{ledger_prefix(self.archive)}line/")
        return [number for s in listed if (number := split_line_document(self.archive, s.key)) is not None]

    def append(self, plan: Plan) -> bool:
        """Put a plan at its place of the line. False when another planner has taken the place."""
        return self.store.create(line_document(self.archive, plan.number), self._bytes(plan))

    def require_in_line(self, plan: Plan) -> None:
        """Check that a plan stands at its place of the line: otherwise the archiver does not know its run.

        :raises IntegrityError: the place is empty, or has another plan with the same offsets.
        """
        other = self.planned(plan.number)
        if other == plan:
            return
        place = f"place {plan.number} of the line of archive {self.archive}"
        if other is None:
            raise IntegrityError(
                f"{place} is empty, and run {plan.run} stood there: somebody deleted the plan, and the next run would "
                "take its offsets again.",
                *advise(repair(self.archive), " puts the plan back"),
            )
        raise IntegrityError(
            f"{place} has run {other.run}, and not {plan.run} as {self._name(self._run_key(plan.run, 'plan'))} says: "
            "somebody deleted the place, and another plan has taken the place and the offsets. Nothing more is written "
            f"for run {plan.run}.",
            *advise(audit(self.archive), " says what it has left"),
        )

    # Runs.

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
        key = self._run_key(manifest.run, "manifest")
        if self.store.create(key, self._bytes(manifest)):
            return manifest
        return self.manifest(manifest.run) or self._gone(key)

    def commit(self, run: str) -> Commit | None:
        """Return the end of a run; None when it has not ended."""
        return self._read(Commit, self._run_key(run, "commit"), run=run)

    def is_final(self, run: str) -> bool:
        """Return True if a run is committed."""
        commit = self.commit(run)
        return commit is not None and commit.outcome == "committed"

    def create_commit(self, commit: Commit) -> Commit:
        """End a run. Returns the end that counts: this one, or the first one."""
        key = self._run_key(commit.run, "commit")
        if self.store.create(key, self._bytes(commit)):
            return commit
        return self.commit(commit.run) or self._gone(key)

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

    # Schemas.

    def schema(self, fingerprint: str) -> Schema | None:
        """A schema that a plan names."""
        key = schema_document(self.archive, fingerprint)
        document = self._read(SchemaDocument, key)
        if document and (has := document.content.fingerprint) != fingerprint:
            raise self._foreign(key, "fingerprint", has, fingerprint)
        return document.content if document else None

    def schemas(self, fingerprints: Iterable[str]) -> dict[str, Schema]:
        """The schemas that a plan names, by fingerprint.

        :raises IntegrityError: one is gone.
        """
        return {fingerprint: self.schema(fingerprint) or self._lost(fingerprint) for fingerprint in fingerprints}

    def keep_schema(self, schema: Schema) -> None:
        """Store a schema, unless it is stored already. A damaged document is replaced by what it was."""
        key, data = (
            schema_document(self.archive, schema.fingerprint),
            self._bytes(SchemaDocument.of(self.archive, schema)),
        )
        try:
            if self.schema(schema.fingerprint) is None:
                self.store.create(key, data)
        except DocumentError:
            if damaged := self.store.version(key):
                self.store.replace(key, data, damaged.etag)

    def _lost(self, fingerprint: str) -> NoReturn:
        raise IntegrityError(
            f"{self._name(schema_document(self.archive, fingerprint))} is gone: the run needs this schema.",
            *advise(
                "Restore it with ",
                repair(self.archive),
                ", if the registry still has it, or from a version or copy of the store",
            ),
        )

    # Data keys.

    def data_key(self, key_id: str) -> Stored[DataKeyDocument]:
        """A wrapped data key, to be replaced.

        :raises IntegrityError: it is gone.
        """
        key = key_document(self.archive, key_id)
        stored = self._version(DataKeyDocument, key)
        if stored.document is None:
            raise IntegrityError(
                f"{self._name(key)} is gone: without it nobody can decrypt the objects of the plan that names it. "
                "Restore it from a version or copy of the store"
            )
        if stored.document.id != key_id:
            raise self._foreign(key, "id", stored.document.id, key_id)
        return stored

    def has_data_key(self, key_id: str) -> bool:
        """Return True if the ledger has this data key."""
        return self.store.head(key_document(self.archive, key_id)) is not None

    def open_key(self, key_id: str) -> DataKey:
        """A data key, unwrapped.

        :raises ConfigError: the archive's configuration names no master key, or another one.
        """
        if self.keyring is None:
            raise ConfigError(
                f"objects of archive {self.archive} are encrypted with data key {key_id}, and no master key is given: "
                "expected `store.encryption: {client: …}` in the archive's YAML; `encrypt: false` there leaves new "
                "plans as they are"
            )
        return self.keyring.open(self.data_key(key_id).document or self._gone(key_document(self.archive, key_id)))

    def keys_of(self, plan: Plan) -> dict[str, DataKey]:
        """The data keys that a run needs, by id: its own, and those of the dead letters that it reads."""
        plans = [plan, *(self.writer_of(plan, item.key) for item in plan.letters if item.key.endswith(SEALED))]
        return {key_id: self.open_key(key_id) for key_id in sorted({p.data_key for p in plans if p.data_key})}

    def data_keys(self) -> list[str]:
        """The ids of all data keys. Lists the store: for rotations only."""
        listed = self.store.list(f"{ledger_prefix(self.archive)}keys/")
        return [key_id for s in listed if (key_id := split_key_document(self.archive, s.key)) is not None]

    def create_data_key(self, document: DataKeyDocument) -> None:
        """Store a new data key."""
        self.store.create(key_document(self.archive, document.id), self._bytes(document))

    def put_data_key(self, document: DataKeyDocument, before: Stored[DataKeyDocument]) -> bool:
        """Replace the wrapped data key that was read. False when another process was faster."""
        return self._replace(key_document(self.archive, document.id), self._bytes(document), before)

    # What people have accepted.

    def acknowledgement(self, finding: str) -> Acknowledgement | None:
        """Return the last decision about a finding; None if there is none. Makes a request for each, and one more."""
        last, number = None, 1
        while document := self._read(Acknowledgement, acknowledged_document(self.archive, finding, number)):
            last, number = document, number + 1
        return last

    def acknowledgements(self) -> list[Acknowledgement]:
        """Return the last decision about each finding that was ever decided about. Lists the store."""
        places = (
            split_acknowledged_document(self.archive, stat.key)
            for stat in self.store.list(acknowledged_prefix(self.archive))
        )
        names = sorted({place[0] for place in places if place})
        return [last for name in names if (last := self.acknowledgement(name))]

    def acknowledge(self, decision: Acknowledgement) -> bool:
        """Store a decision. Returns False if another one was faster."""
        key = acknowledged_document(self.archive, decision.finding, decision.number)
        return self.store.create(key, self._bytes(decision))

    # Topics.

    def claim(self, topic: str) -> str:
        """Claim a topic for this archive. Returns the archive that has it: this one, or the one that was first."""
        key = claim_document(topic)
        if self.store.create(key, Claim(archive=self.archive, topic=topic).to_json()):
            return self.archive
        return self.claimed(topic) or self._gone(key)

    def claimed(self, topic: str) -> str | None:
        """The archive that has claimed a topic in this store; None: none has."""
        key = claim_document(topic)
        data = self.store.get(key)
        return None if data is None else Claim.from_json(data, self._name(key)).archive

    # Derived documents.

    def hour(self, hour: int | None, progress: Progress | None = None) -> HourProof | None:
        """Return the proof of an hour, its own or that of the stretch that covers the hour; None: it has none.

        :param hour: whole hours since 1970; None: of the records without a time.
        :param progress: for a caller that asks for many hours and has just read it.
        """
        if proof := self.stored_hour(hour).document:
            return proof
        covered = proof_in_a_stretch(progress or self.progress(), hour)
        # The order matters: a run writes the proofs of the hours that have records before the stretch around them.
        return covered and (self.stored_hour(hour).document or covered)

    def stored_hour(self, hour: int | None) -> Stored[HourProof]:
        """Return an hour's own proof, to be replaced."""
        key = hour_document(self.archive, hour)
        stored = self._version(HourProof, key)
        if stored.document and stored.document.hour != hour:
            raise self._foreign(key, "hour_start", stored.document.hour_start, f"hour {hour}")
        return stored

    def put_hour(self, proof: HourProof, before: Stored[HourProof]) -> bool:
        """Replace the hour's proof that was read. False when another process was faster."""
        return self._replace(hour_document(self.archive, proof.hour), self._bytes(proof), before)

    def page(self, proof: HourProof, number: int) -> HourPage:
        """One of a proof's pages.

        :raises IntegrityError: it is not there.
        """
        key = hour_document(self.archive, proof.hour, number)
        page = self._read(HourPage, key)
        if page is None:
            raise IntegrityError(f"{self._name(key)} is gone.", *advise(repair(self.archive), " computes it again"))
        if (page.hour_start, page.page) != (proof.hour_start, number):
            raise self._foreign(key, "page", f"{page.page} of {page.hour_start}", f"{number} of {proof.hour_start}")
        return page

    def put_page(self, page: HourPage, before: Stored[HourProof]) -> bool:
        """Write a new page of the proof that was read. False when another process was faster."""
        hour = None if page.hour_start is None else to_hour(page.hour_start)
        key, data = hour_document(self.archive, hour, page.page), self._bytes(page)
        if self.store.create(key, data):
            return True
        stored = self.store.version(key)
        if stored is None or stored.data == data:
            return stored is not None
        # The page is of a proof that was computed again since. The order matters: a page is named only by a proof that
        # was written before.
        head = self.store.version(hour_document(self.archive, hour))
        return (head and head.etag) == before.etag and self.store.replace(key, data, stored.etag)

    def contributions(self, proof: HourProof) -> tuple[Contribution, ...]:
        """Return what the runs that count have added to an hour, in the order of the line; one request for each
        page.
        """
        return counting(proof, (self.page(proof, number) for number in range(len(proof.pages))))

    def hours(self, near: range | None = None) -> tuple[int | None, ...]:
        """The hours with a proof of their own, oldest first; None, for the records without a time, last. Lists.

        :param near: hours that all have to be among them; others may be.
        """
        prefix = f"{ledger_prefix(self.archive)}hours/"
        if near:
            # Keys are in the order of their hours.
            ends = [hour_document(self.archive, hour) for hour in (near[0], near[-1])]
            prefix = commonprefix(ends)  # noqa: RUF071 - of characters
        listed = self.store.list(prefix)
        places = (split_hour_document(self.archive, stat.key) for stat in listed)
        hours = {place[0] for place in places if place and place[1] is None}
        return tuple(sorted(hours, key=lambda hour: (hour is None, hour)))

    def progress(self) -> Progress | None:
        """The summary of all settled runs; None before the first."""
        return self.stored_progress().document

    def stored_progress(self) -> Stored[Progress]:
        """The same, to be replaced."""
        return self._version(Progress, progress_document(self.archive))

    def put_progress(self, progress: Progress, before: Stored[Progress]) -> bool:
        """Replace the summary that was read. False when another process was faster."""
        return self._replace(progress_document(self.archive), self._bytes(progress), before)

    # Reading and writing documents.

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
        return self._version(kind, key, run).document

    def _version(self, kind: type[AnyDocument], key: str, run: str | None = None) -> Stored[AnyDocument]:
        version = self.store.version(key)
        if version is None:
            return Stored(None, None)
        document = kind.from_json(version.data, self._name(key))
        if document.archive != self.archive:
            raise self._foreign(key, "archive", document.archive, self.archive)
        if run is not None and (found_run := getattr(document, "run", None)) != run:
            raise self._foreign(key, "run", found_run, run)
        return Stored(document, version.etag)

    def _replace(self, key: str, data: bytes, before: Stored[AnyDocument]) -> bool:
        return self.store.create(key, data) if before.etag is None else self.store.replace(key, data, before.etag)

    def _foreign(self, key: str, field: str, actual: object, expected: object) -> DocumentError:
        return DocumentError(
            f"{self._name(key)} is not the document its key promises: found {field} {foreign(str(actual))}, expected "
            f"{expected}. "
            "It was copied or moved there; restore the right one from a backup of the store"
        )

    def _gone(self, key: str) -> NoReturn:
        raise TransientError(f"{self._name(key)} existed when it was to be written, and is gone now")

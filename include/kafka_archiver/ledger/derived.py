"""Derived documents: proofs and the progress. Each replaces only the version that was read."""

from os.path import commonprefix

from kafka_archiver.ledger.documents import Documents, Stored
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import repair
from kafka_archiver.messages.errors import DocumentError, IntegrityError
from kafka_archiver.model.object_keys import hour_document, ledger_prefix, progress_document, split_hour_document
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import Contribution, HourPage, HourProof, counting, proof_in_a_stretch
from kafka_archiver.values.intervals import to_hour


class DerivedDocuments(Documents):
    """The proofs of hours and the progress."""

    __slots__ = ()

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

    def proof_gone(self, hour: int | None) -> IntegrityError:
        """Return the error about an hour whose proof existed."""
        return IntegrityError(
            f"{self._name(hour_document(self.archive, hour))} is gone.",
            *advise(repair(self.archive), " computes it again"),
        )

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
        try:
            return self._version(Progress, progress_document(self.archive))
        except DocumentError as error:
            raise error.advised(*advise("Or ", repair(self.archive), " computes it again")) from error

    def put_progress(self, progress: Progress, before: Stored[Progress]) -> bool:
        """Replace the summary that was read. False when another process was faster."""
        return self._replace(progress_document(self.archive), self._bytes(progress), before)

"""The line: the plans of an archive, numbered without gaps. Each is created only where no document is.

The planner that comes second looks again (`work/plan/interval_plan`).
"""

from collections.abc import Iterator

from kafka_archiver.ledger.documents import Documents
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import audit, repair
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.object_keys import ledger_prefix, line_document, split_line_document
from kafka_archiver.model.plan import Plan


class LineDocuments(Documents):
    """The plans by their place in the line."""

    __slots__ = ()

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

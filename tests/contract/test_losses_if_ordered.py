"""`timestamp.max_disorder` shortens what a loss leaves unsure: the archive says that times are ordered; so do proofs.

Without it, a lost record may be of any hour up to the moment at which it was known to be gone.
"""

import random
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.planning import interval_offsets
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.rebuild import rebuild_run
from tests.support.topics import DAY, HOUR, Record
from tests.support.twin_archive import TwinArchive

pytestmark = pytest.mark.contract

MINUTE = HOUR // 60
LOG = TopicPartition("orders", 0)
LOSS = {"lost_offsets": "record_loss"}
ASSUMED = "no record is more than 300 s older than an earlier one of its partition"


def produce(archive: TwinArchive, *minutes: float) -> None:
    archive.twin.produce("orders", [Record(0, DAY + int(minute * MINUTE), b"{}") for minute in minutes])


def lost_at(minute: float, minutes_then: list[float], disorder: str | None = "5m") -> TwinArchive:
    """An archive that loses a record of hour 1; later ones are archived at the end of hour 5."""
    archive = TwinArchive(1, 6, disorder, LOSS)
    produce(archive, 10)
    archive.run(0, "scheduled")
    produce(archive, minute)
    archive.twin.delete_records(LOG, 2)
    produce(archive, *minutes_then)
    archive.run(5, "scheduled")
    return archive


def complete(archive: TwinArchive) -> dict[int, str | None]:
    """The hours that are complete, with what they assume."""
    proofs = {number: archive.proof(number) for number in range(archive.hours)}
    return {number: proof.assumes for number, proof in proofs.items() if proof and proof.status == "complete"}


def test_hours_behind_the_first_record_that_is_left_are_complete_and_say_what_they_assume() -> None:
    assert complete(lost_at(90, [130, 200])) == {0: None, 3: ASSUMED, 4: ASSUMED, 5: ASSUMED}


def test_without_the_declaration_they_are_incomplete() -> None:
    assert complete(lost_at(90, [130, 200], None)) == {0: None}


def test_a_lost_record_may_be_newer_by_the_declared_time_than_the_first_one_that_is_left() -> None:
    assert complete(lost_at(90, [177, 200])) == {0: None, 4: ASSUMED, 5: ASSUMED}


def test_where_nothing_is_left_behind_the_loss_nothing_is_known() -> None:
    assert complete(lost_at(90, [])) == {0: None}


def test_a_record_that_contradicts_the_declaration_voids_it() -> None:
    assert complete(lost_at(90, [130, 200, 190])) == {0: None}


def test_a_record_that_contradicts_it_later_voids_it_for_later_hours() -> None:
    archive = lost_at(90, [130, 200])
    produce(archive, 100)
    archive.hours = 8
    archive.run(6, "scheduled")
    archive.run(7, "scheduled")
    # The loss was found in hour 6.
    assert complete(archive) == {0: None, 3: ASSUMED, 4: ASSUMED, 5: ASSUMED, 7: None}


def declare(archive: TwinArchive, disorder: timedelta | None) -> None:
    """Change the YAML."""
    timestamp = archive.archive.timestamp.model_copy(update={"max_disorder": disorder})
    archive.archive = archive.archive.model_copy(update={"timestamp": timestamp})


@pytest.mark.parametrize("partition", [0, 1])
def test_a_record_that_contradicts_it_voids_it_also_if_its_run_did_not_declare_it(partition: int) -> None:
    archive = TwinArchive(2, 6, "5m", LOSS)
    produce(archive, 10)
    archive.run(0, "scheduled")
    declare(archive, None)
    records = [Record(partition, DAY + minute * MINUTE, b"{}") for minute in (100, 20)]
    archive.twin.produce("orders", records)
    archive.run(1, "scheduled")
    declare(archive, timedelta(minutes=5))
    produce(archive, 150)
    archive.twin.delete_records(LOG, archive.twin.log(LOG).high)
    produce(archive, 190, 200)
    archive.run(5, "scheduled")
    assert complete(archive) == {0: None, 1: None}


@pytest.mark.parametrize(("minutes", "assumes"), [([30, 10], None), ([10, 30], ASSUMED)])
def test_a_record_of_a_log_that_is_gone_voids_it_too(minutes: list[int], assumes: str | None) -> None:
    archive = TwinArchive(1, 8, "5m", {**LOSS, "recreated_topic": "new_generation"})
    produce(archive, *minutes)
    archive.run(0, "scheduled")
    archive.twin.delete_topic("orders")
    archive.twin.create_topic("orders")
    produce(archive, 70)
    archive.run(1, "scheduled")
    produce(archive, 140)
    archive.twin.delete_records(LOG, 2)
    produce(archive, 260, 300)
    archive.run(5, "scheduled")
    # Without the declaration, hours are unsure until the loss was found, in hour 6.
    assert complete(archive).get(5) == assumes
    former = archive.ledger.progress().former_disorder
    assert former == (20 * MINUTE if assumes is None else 0)


def test_a_later_loss_that_is_not_declared_counts_whole() -> None:
    archive = lost_at(90, [130, 200])
    declare(archive, None)
    produce(archive, 400)
    archive.twin.delete_records(LOG, 5)
    produce(archive, 500)
    archive.hours = 12
    archive.run(9, "scheduled")
    archive.run(11, "scheduled")
    assert complete(archive) == {0: None, 3: ASSUMED, 4: ASSUMED, 5: ASSUMED, 11: None}


def test_a_log_that_began_later_than_at_0_is_judged_by_its_first_record() -> None:
    archive = TwinArchive(1, 6, "5m")
    produce(archive, 20, 30, 130, 131, 200)
    archive.twin.delete_records(LOG, 2)
    archive.run(5, "scheduled")
    # Hour 4 has no records, and no run.
    assert complete(archive) == {3: ASSUMED, 5: ASSUMED}


def test_plans_without_the_declaration_have_no_field_of_it() -> None:
    archive = lost_at(90, [130], None)
    assert all(b"ordered_within_ms" not in plan.to_json() for plan in archive.ledger.following(0))
    assert {plan.ordered_within_ms for plan in lost_at(90, [130]).ledger.following(0)} == {300_000}


def test_a_rebuild_by_another_time_assumes_nothing_of_the_order_of_kafkas_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interval_offsets, "GUARD", 1)
    archive = TwinArchive(1, 8, "5m", start="latest")
    for number in range(7):
        # By the header, records of hour 5 are of hour 2.
        header = DAY + (number if number != 5 else 2) * HOUR
        archive.twin.produce(
            "orders", [Record(0, DAY + number * HOUR, b"{}", None, [("t", b"%d" % header)]) for _ in range(3)]
        )
    archive.run(7, "scheduled")
    unfinished = archive.plan(2, "backfill").runs[-1]
    archive.file_by({"from": "header", "header": "t", "unit": "ms", "missing": "record"})
    archive.finish(rebuild_run(archive.context, unfinished))
    proof = archive.proof(2)
    assert proof
    assert (proof.rows, proof.status) == (3, "incomplete")


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), disorder=st.sampled_from([1, 5, 40]), keep=st.floats(0, 1))
def test_no_hour_is_called_complete_that_has_lost_a_record_where_the_declaration_is_true(
    seed: int, disorder: int, keep: float
) -> None:
    draw = random.Random(seed)
    archive = TwinArchive(2, 8, f"{disorder}m", LOSS)
    newest, minute = [0, 0], 0.0
    lost: list[tuple[int, int]] = []
    for number in range(8):
        records = []
        while minute < 60 * (number + 1):
            partition = draw.randrange(2)
            newest[partition] = max(newest[partition], int(minute))
            time = max(newest[partition] - draw.randrange(disorder + 1), 0)
            records.append(Record(partition, DAY + time * MINUTE, b"{}"))
            minute += draw.choice([0.5, 5, 30])
        archive.now += 1000
        archive.twin.produce("orders", records)
        if draw.random() > keep:
            name = TopicPartition("orders", draw.randrange(2))
            log = archive.twin.log(name)
            before = draw.randint(log.start, log.high)
            stands = archive.twin.committed("archiver-orders", [name])[name] or 0
            lost += [((e.timestamp - DAY) // HOUR, e.appended) for e in log.entries[stands:before]]
            archive.twin.delete_records(name, before)
        if draw.random() < 0.8:
            archive.run(number, "scheduled")
    archive.run(8, "scheduled")
    for number, appended in lost:
        proof = archive.proof(number) if number < 8 else None
        if proof and proof.complete_as_of:
            assert to_ms(proof.complete_as_of) < appended

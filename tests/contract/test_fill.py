"""Backfills behind wrong clocks, and filling an archive: everything that Kafka still has is archived in the end."""

import random
from typing import Any

import pytest

from kafka_archiver.audit.inspection import audit
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.planning.time_boundary import SMALL
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import from_ms, to_hour
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.plan import Fill
from kafka_archiver.work.repair import derive_documents
from tests.support.archiver import hour
from tests.support.kafka_twin import KafkaTwin
from tests.support.topics import DAY, HOUR, Record
from tests.support.twin_archive import TwinArchive

pytestmark = pytest.mark.contract

YEAR_2090 = 3_786_912_000_000
YEAR_1971 = 31_536_000_000
HOURS = 6


class Latest(TwinArchive):
    """An archive from `latest` of a topic with three partitions; one record in fifty is of the year 2090.

    :param records: all records, in their order; None: 600 of six hours.
    """

    def __init__(
        self, records: list[Record] | None = None, hours: int = HOURS, disorder: str | None = None, **source: Any
    ) -> None:
        super().__init__(3, hours, disorder, **{"start": "latest", **source})
        self.now = DAY + hours * HOUR
        self.twin.produce("orders", wrong_clocks(random.Random(5), 600, HOURS, 50) if records is None else records)
        self.run(hours - 1, "scheduled")


def wrong_clocks(draw: random.Random, count: int, hours: int, one_in: int, jitter: int = 0) -> list[Record]:
    """Records of these hours; some are of the year 2090, half as many of 1971.

    :param jitter: milliseconds by which a record may be late.
    """
    times = sorted(DAY + draw.randrange(hours * HOUR) for _ in range(count))
    late = [max(time - draw.randrange(jitter + 1), DAY) for time in times]
    wrong = [draw.choice([YEAR_2090, YEAR_2090, YEAR_1971]) if draw.random() < 1 / one_in else time for time in late]
    return [Record(draw.randrange(3), time, b"{}") for time in wrong]


@pytest.fixture
def latest() -> Latest:
    """Nobody backfills the hours 1 and 3."""
    archive = Latest()
    for number in (4, 0, 2):
        archive.run(number, "backfill")
    return archive


@pytest.mark.parametrize("jitter", [0, HOUR // 6])
@pytest.mark.parametrize("of", [6, 10])
@pytest.mark.parametrize("seed", range(3))
def test_backfills_of_every_hour_take_its_records_behind_wrong_clocks(seed: int, of: int, jitter: int) -> None:
    draw = random.Random(seed)
    records = wrong_clocks(draw, 2400, of, 100, jitter)
    # The scheduled run is that of the last hour.
    archive = Latest(records, of)
    for number in draw.sample(range(of - 1), of - 1):
        archive.run(number, "backfill")
    offsets, mine = [0, 0, 0], set()
    for record in records:
        if DAY <= record.timestamp < DAY + (of - 1) * HOUR:
            mine.add((record.partition, offsets[record.partition]))
        offsets[record.partition] += 1
    assert len(mine - archive.archived) <= len(mine) // 1000
    archive.run(of, "backfill", Fill())
    assert archive.left() == 0
    assert archive.statuses == ["complete"] * of


def test_a_backfill_of_one_hour_takes_little_of_the_other_hours() -> None:
    records = wrong_clocks(random.Random(1), 9000, HOURS, 200)
    archive = Latest(records)
    archive.run(3, "backfill")
    assert 1500 * 0.99 < len(archive.archived) < 1500 + 3 * 6 * SMALL


def test_a_backfill_asks_for_no_times_where_every_offset_is_archived(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Latest(start="earliest")
    monkeypatch.setattr(KafkaTwin, "times_behind", lambda *_: pytest.fail("asked for times"))
    archive.run(2, "backfill")
    assert archive.left() == 0


def test_a_backfill_whose_records_contradict_max_disorder_assumes_nothing() -> None:
    archive = Latest(start="latest", disorder="5m")
    archive.run(2, "backfill")
    planned = archive.ledger.plan(hour(2).id)
    assert planned
    assert planned.max_disorder_ms is None
    proof = archive.ledger.hour(to_hour(hour(2).start))
    assert proof
    assert proof.assumes is None


def test_what_no_backfill_takes_is_left_and_the_proof_names_the_command(latest: Latest) -> None:
    assert latest.left() > 0
    proof = latest.ledger.hour(to_hour(hour(2).start))
    assert proof
    assert proof.status == "incomplete"
    assert "`airflow archive fill orders` archives what Kafka still has" in str(proof.reason)


def test_a_fill_takes_all_that_is_left_and_completes_the_hours(latest: Latest) -> None:
    latest.run(HOURS, "backfill", Fill())
    assert latest.left() == 0
    assert latest.statuses == ["complete"] * HOURS
    rows = sum(entry.rows for run in latest.ledger.runs() if (m := latest.ledger.manifest(run)) for entry in m.objects)
    assert rows == 600


def test_an_hour_that_a_late_listing_hides_stays_incomplete_until_a_repair_computes_it_again(
    latest: Latest, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = MemoryStore.list
    with monkeypatch.context() as patch:
        patch.setattr(
            MemoryStore, "list", lambda store, prefix: (s for s in listed(store, prefix) if "/hours/" not in s.key)
        )
        latest.run(HOURS, "backfill", Fill())
    assert "incomplete" in latest.statuses
    report = audit(latest.archive, latest.world.store, from_ms(latest.now))
    assert "proof-wrong" in {finding.kind for finding in report.findings}
    derive_documents(latest.ledger)
    assert latest.statuses == ["complete"] * HOURS


def test_a_fill_goes_on_where_the_limit_stopped_it(latest: Latest) -> None:
    whole = latest.left()
    latest.archive = latest.archive.model_copy(
        update={"source": latest.archive.source.model_copy(update={"max_records_per_run": whole // 3 + 1})}
    )
    left = [whole]
    for number in range(HOURS, HOURS + 3):
        latest.run(number, "backfill", Fill())
        left.append(latest.left())
    assert left == sorted(set(left), reverse=True)
    assert left[-1] == 0
    assert latest.statuses == ["complete"] * HOURS


def test_a_fill_takes_nothing_behind_an_open_transaction() -> None:
    archive = TwinArchive(1, 2)
    name = TopicPartition("orders", 0)
    # By hand, before there is a record.
    archive.twin.reset_group(archive.archive.group, {name: 2})
    archive.twin.produce("orders", [Record(0, DAY, b"{}")] * 5, "open")
    archive.run(1, "scheduled")
    archive.run(2, "backfill", Fill())
    assert archive.left() == 0
    archive.twin.end_transaction("open", True)
    assert archive.left() == 2
    archive.run(3, "backfill", Fill())
    archive.run(4, "scheduled")
    assert archive.left() == 0
    assert len(archive.archived) == 6


def test_a_fill_from_an_hour_on_leaves_only_what_is_older() -> None:
    archive = Latest(wrong_clocks(random.Random(5), 600, HOURS, 10**9))
    middle = hour(3).start
    assert 0 < archive.left(middle) < archive.left()
    archive.run(HOURS, "backfill", Fill(middle))
    assert archive.left(middle) == 0
    assert archive.left() > 0
    # What is left is older than that hour.
    assert archive.statuses[3:] == ["complete"] * (HOURS - 3)


def test_a_fill_moves_no_group_and_takes_nothing_of_the_scheduled_runs(latest: Latest) -> None:
    names = [TopicPartition("orders", number) for number in range(3)]
    stands = latest.twin.committed("archiver-orders", names)
    latest.twin.produce("orders", [Record(0, latest.now, b"{}")])
    latest.run(HOURS, "backfill", Fill())
    assert latest.twin.committed("archiver-orders", names) == stands
    planned = latest.ledger.plan(hour(HOURS).id)
    assert planned
    assert all(end <= (stands[p.name] or 0) for p in planned.partitions for _, end in p.ranges)


def test_an_hour_of_another_time_is_refused() -> None:
    archive = Latest()
    timestamp = type(archive.archive.timestamp).model_validate({"from": "wallclock"})
    archive.archive = archive.archive.model_copy(update={"timestamp": timestamp})
    with pytest.raises(ConfigError, match="Fill it without `from`"):
        archive.left(hour(3).start)


BY_HEADER = {"from": "header", "header": "t", "unit": "ms", "missing": "record"}


@pytest.mark.parametrize(("first", "second"), [({}, BY_HEADER), (BY_HEADER, {})], ids=["to a header", "from a header"])
@pytest.mark.parametrize("gone", [False, True])
def test_what_was_left_out_by_one_time_may_be_of_any_hour_by_another(
    first: dict[str, Any], second: dict[str, Any], gone: bool
) -> None:
    archive = TwinArchive(1, 4, start="latest", policies={"lost_offsets": "record_loss"})
    old, new = DAY - 3 * HOUR, DAY + 2 * HOUR
    # By the first time it is older than the archive, by the second it is of its third hour.
    record_time, header = (new, old) if first else (old, new)
    archive.now = DAY
    archive.twin.produce("orders", [Record(0, record_time, b"{}", None, [("t", b"%d" % header)])])
    archive.file_by(first)
    archive.run(0, "scheduled")
    archive.file_by(second)
    archive.run(1, "scheduled")
    if gone:
        archive.twin.delete_records(TopicPartition("orders", 0), 1)
    archive.run(2, "scheduled")
    archive.run(3, "scheduled")
    assert archive.statuses[2] == "incomplete"
    if not gone:
        archive.run(4, "backfill", Fill())
        assert archive.left() == 0
        assert archive.statuses == ["complete"] * 4

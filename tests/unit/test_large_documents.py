"""Plans of many partitions: an idle run writes little, and every reader gets the JSON."""

import gzip
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import DocumentError
from kafka_archiver.model.object_keys import line_document
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import Interval

pytestmark = pytest.mark.unit
HOUR = datetime(2026, 11, 21, 5, tzinfo=UTC)


def idle_plan(partitions: int) -> Plan:
    """A plan of partitions without a new record, which have other offsets and ages each."""
    states = [
        PartitionPlan(
            topic=f"orders-{n // 30:03}",
            topic_id=f"{n // 30 * 7_919_777_731:022x}",
            partition=n % 30,
            start=(end := n * 104_729 % 999_983),
            end=end,
            log_start=end // 3,
            log_end=end,
            high=end,
            leader_epoch=n % 7,
            ranges=(),
        )
        for n in range(partitions)
    ]
    return Plan(
        archive="orders",
        number=1,
        interval=Interval(start=HOUR, end=HOUR + timedelta(hours=1)),
        origin="scheduled",
        planned_at=HOUR,
        cluster_id="c",
        group="archiver.orders",
        settings=Settings(),
        policies={},
        partitions=tuple(states),
    )


def test_an_idle_run_of_3000_partitions_writes_at_most_100_kb_of_plan() -> None:
    store, plan = MemoryStore("x"), idle_plan(3_000)
    ledger = Ledger(store, "orders")
    assert ledger.append(plan)
    stored = store.get(line_document("orders", 1)) or b""
    assert len(plan.to_json()) > 1_000_000 > 10 * len(stored)
    assert len(stored) <= 100_000
    assert gzip.decompress(stored) == plan.to_json()
    assert ledger.planned(1) == plan
    # Commits name the digest: it is that of the JSON, so an uncompressed copy is the same document.
    assert ledger.planned(1).digest == plan.digest  # type: ignore[union-attr]


def test_small_plans_and_large_ones_of_earlier_releases_are_plain_json() -> None:
    assert idle_plan(500).to_bytes() == idle_plan(500).to_json()
    large = idle_plan(1_000)
    assert large.to_bytes() != large.to_json()
    assert Plan.from_json(large.to_json(), "x") == Plan.from_json(large.to_bytes(), "x") == large


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:2] + b"\0" + data[3:]])
def test_a_damaged_large_plan_is_no_readable_document(damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(DocumentError, match="is not a readable plan document: not gzip"):
        Plan.from_json(damage(idle_plan(1_000).to_bytes()), "x")

"""Asset events of closed hours. That Airflow makes one of each is in tests/integration/test_scheduler.py."""

from datetime import UTC, datetime

import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors
from airflow.sdk.execution_time.task_runner import _serialize_outlet_events

from kafka_archiver.orchestration.assets import announce, hours_alias
from kafka_archiver.proof import Contribution, HourProof, ProofObject
from tests.dags.conftest import MakeArchive

pytestmark = pytest.mark.dags


def proof(hour: int, rows: int, late_rows: int = 0) -> HourProof:
    objects = tuple(ProofObject(key=f"k{n}", rows=rows, bytes=1, checksum="c") for n in range(3))
    return HourProof(
        archive="orders",
        hour_start=datetime(2026, 11, 21, hour, tzinfo=UTC),
        status="complete",
        changed_by="r",
        rows=rows,
        bytes=3,
        late_rows=late_rows,
        runs=(Contribution(run="r", late=False, rows=rows, objects=objects),),
    )


def test_each_hour_is_an_event_of_its_own(archive: MakeArchive) -> None:
    events = OutletEventAccessors()
    announce(archive(), [proof(4, 10), proof(5, 20, late_rows=2)], events)
    found = list(_serialize_outlet_events(events))
    assert [e["extra"] for e in found] == [
        {
            "archive": "orders",
            "hour": f"2026-11-21T0{hour}:00:00Z",
            "status": "complete",
            "rows": rows,
            "late_rows": late,
            "objects": 3,
            "proof": f"_ledger/orders/hours/2026-11-21/0{hour}.json",
        }
        for hour, rows, late in ((4, 10, 0), (5, 20, 2))
    ]
    for event in found:
        assert event["source_alias_name"] == "archive_orders_hours"
        assert event["dest_asset_key"] == {
            "name": "archive_orders_hours",
            "uri": "s3://bucket/lake/_ledger/orders/hours",
        }


def test_no_hour_is_no_event(archive: MakeArchive) -> None:
    events = OutletEventAccessors()
    announce(archive(), [], events)
    assert list(_serialize_outlet_events(events)) == []
    assert hours_alias(archive()).name == "archive_orders_hours"

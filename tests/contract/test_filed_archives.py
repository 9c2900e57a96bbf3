"""Archives of other layouts and times: archived, audited, rebuilt, with dead letters that are replayed."""

from typing import Any

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.support.chunks import new_store
from tests.support.lake import FIRST, HOUR, Lake

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
LAYOUTS: list[Any] = ["hourly", "deviantart", {"fields": ["value.n"], "topic": False}, {"name": "lenses"}]


def lake_of(layout: Any, timestamp: dict[str, Any], bad_record: str = "fail") -> Lake:
    lake = Lake(new_store(), {P0: Range(0, 6)}, {"chunk_records": 4}, {"bad_record": bad_record})
    configure(lake, layout, timestamp)
    return lake


def configure(lake: Lake, layout: Any, timestamp: dict[str, Any]) -> None:
    document = lake.archive.model_dump()
    document["source"]["value"] = {"decode": "json"}
    document["store"]["layout"] = layout
    lake.configure(Archive.model_validate({**document, "timestamp": timestamp}))


def data(lake: Lake) -> list[str]:
    """The keys of all objects."""
    return sorted(s.key for s in lake.store.list("") if not s.key.startswith("_"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_wall_clock_files_by_the_plan_and_a_rebuild_by_the_same(layout: Any) -> None:
    lake = lake_of(layout, {"from": "wallclock"})
    run = lake.run(6)
    at = to_ms(lake.planned(run).planned_at)
    before, manifest = data(lake), lake.manifest(run)
    assert {hour for o in manifest.objects for hour in o.hours} == {at // HOUR}
    assert lake.audit(deep=True).verdict == "clean"
    lake.rebuild(run)
    assert data(lake) == [key.replace(".jsonl", "+r1.jsonl") for key in before]
    assert lake.audit(deep=True).verdict == "clean"


def test_hours_of_values_are_proved() -> None:
    lake = lake_of("topic_partition", {"from": "value", "path": "n", "unit": "s", "missing": None})
    first = to_ms(FIRST) // 1000
    for offset in range(5):
        # The later half is of the hour before.
        lake.odd[P0, offset] = {"value": b'{"n": %d}' % (first - 3600 * (offset > 2))}
    lake.odd[P0, 5] = {"value": b"{}"}
    manifest = lake.manifest(lake.run(6))
    assert [dict(o.rows_by_hour or ()) for o in manifest.objects] == [
        {first // 3600: 3, first // 3600 - 1: 1},
        {None: 1, first // 3600 - 1: 1},
    ]
    assert lake.proof(0).rows == 3
    assert lake.audit(deep=True).verdict == "clean"


def test_records_without_the_field_are_dead_letters_until_the_yaml_is_changed() -> None:
    lake = lake_of({"fields": ["value.a"]}, {}, "dead_letter")
    run = lake.run(6)
    assert lake.manifest(run).account["dead_lettered"] == 6
    assert data(lake) == []
    configure(lake, {"fields": ["value.n"]}, {})
    lake.replay([run])
    assert len(data(lake)) == 6
    assert lake.audit(deep=True).verdict == "clean"


def test_a_prefix_that_leaves_no_room_for_values_is_refused() -> None:
    document = {"archive": "o", "source": {"topics": ["orders"], "value": {"decode": "json"}}}
    store: dict[str, Any] = {"url": f"s3://b/{'x' * 201}"}
    Archive.model_validate({**document, "store": store})
    with pytest.raises(ValueError, match="a prefix of at most 200 bytes"):
        Archive.model_validate({**document, "store": {**store, "layout": {"fields": ["value.a"]}}})


def test_a_stranger_among_the_objects_of_several_topics_is_found() -> None:
    lake = lake_of("deviantart", {})
    lake.run(6)
    stranger = "2026-11-20/orders-00000-000000000099.jsonl.gz"
    lake.store.put(stranger, b"x")
    # Not of this archive's topic, or of nobody: their owner knows.
    lake.store.put("2026-11-20/other-00000-000000000099.jsonl.gz", b"x")
    lake.store.put("2026-11-20/readme.txt", b"x")
    report = lake.audit()
    assert [(f.kind, f.subject) for f in report.findings] == [("unexplained", stranger)]

"""Layouts: `hourly`, and one that nobody asked for, by which a whole archive is filed, proved and audited."""

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.columns import Int64s, column
from kafka_archiver.errors import ConfigError, DocumentError
from kafka_archiver.intervals import LAST_MS, hour_of
from kafka_archiver.layouts.base import Filed
from kafka_archiver.layouts.hourly import NO_HOUR, Hourly
from kafka_archiver.layouts.registry import LAYOUTS, hours_of, layout_at, layout_of
from kafka_archiver.leftovers import place_of
from kafka_archiver.plan import Settings
from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.writer.commit import complete
from kafka_archiver.writer.result import Limits
from tests.support.chunks import HOUR, Row, batch, chunk_of, cut, facts, new_store, read_values, write
from tests.support.lake import Lake

pytestmark = pytest.mark.unit

TIMES = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-1, 0, HOUR - 1, HOUR, LAST_MS, LAST_MS + 1])


class Buckets:
    """Ten offsets each."""

    name = "buckets"
    columns = ()

    def parts(self, batch: pa.RecordBatch) -> Int64s:
        return column(batch, "offset") // 10

    def path(self, part: int) -> str:
        return f"bucket={part:06d}"

    def parse(self, path: str) -> int:
        part = int(path.removeprefix("bucket="))
        if self.path(part) != path:
            raise ValueError(path)
        return part

    def hours(self, entry: Filed) -> Collection[int | None]:
        return range(entry.min_timestamp // HOUR, entry.max_timestamp // HOUR + 1)


@pytest.fixture
def buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second layout: a class, and a line in the registry."""
    monkeypatch.setitem(LAYOUTS, "buckets", Buckets())


@given(st.lists(TIMES, max_size=20) | st.lists(st.integers(5 * HOUR, 6 * HOUR - 1), max_size=20))
def test_hourly_files_each_record_in_the_hour_of_its_time(times: list[int]) -> None:
    layout = Hourly()
    found = layout.parts(batch([Row(n, time) for n, time in enumerate(times)])).tolist()
    assert found == [NO_HOUR if hour_of(time) is None else hour_of(time) for time in times]
    for part in found:
        assert layout.parse(layout.path(part)) == part
        assert layout_at(layout.path(part)) is LAYOUTS["hourly"]


def test_a_plan_of_a_layout_that_this_release_lacks_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"store\.layout: expected hourly, found 'weekly'"):
        layout_of(Settings(layout="weekly"))


def test_a_path_of_no_layout_is_told() -> None:
    assert layout_at("year=2026") is None
    [entry] = complete([write(chunk_of(0, 1), cut([Row(0, 0)], 1), store := new_store())], store)
    with pytest.raises(DocumentError, match=r"an object in 'year=2026', which is not a path of a layout .*hourly"):
        hours_of(entry.model_copy(update={"path": "year=2026"}))


@pytest.mark.usefixtures("buckets", "small_parts")
@pytest.mark.parametrize("open_objects", [1, 64])
def test_the_writer_files_by_what_the_layout_says(open_objects: int) -> None:
    draw = np.random.default_rng(7)
    offsets = np.cumsum(draw.integers(1, 4, 200)).tolist()
    rows = [Row(o, draw.integers(0, 3) * HOUR, value=b"%d" % o if o % 9 else b"bad\n") for o in offsets]
    chunk, store = chunk_of(0, offsets[-1] + 1), new_store()
    options = {"layout": "buckets", "bad_record": "dead_letter", "part_bytes": 50}
    limits = Limits(memory_bytes=100, open_objects=open_objects, upload_threads=1)
    result = write(chunk, cut(rows, 17), store, limits, **options)
    assert facts(result) == facts(write(chunk, cut(rows, 200), **options))
    expected: dict[str, list[bytes]] = {}
    for row in rows:
        bad = row.value == b"bad\n"
        expected.setdefault(f"{'_dead_letter/' * bad}orders/bucket={row.offset // 10:06d}", []).append(
            b"%d" % row.offset
        )
    found = {
        entry.key.rpartition("/")[0]: [
            line if line.isdigit() else line.split(b'"offset":')[1].split(b",")[0] for line in lines
        ]
        for entry in complete([result], store)
        for lines in [read_values(store.get(entry.key) or b"")]
    }
    assert found == expected
    assert all(place_of(o.upload.key) for o in result.objects)


@pytest.mark.usefixtures("buckets")
def test_an_archive_of_another_layout_is_proved_and_audited_as_any_other() -> None:
    name = TopicPartition(f"t-{new_store().url[-8:]}", 0)
    settings = {"chunk_records": 12, "layout": "buckets"}
    lake = Lake(new_store(), {name: Range(0, 24)}, settings, {"bad_record": "dead_letter"})
    # One an hour: chunks of twelve hours, in buckets of ten.
    lake.odd[name, 5] = {"value": b"two\nlines"}
    run = lake.run(24)
    manifest = lake.manifest(run)
    first = lake.brokers.first
    assert [(o.path, o.rows, list(o.hours)) for o in manifest.objects] == [
        ("bucket=000000", 9, list(range(first, first + 10))),
        ("bucket=000001", 2, [first + 10, first + 11]),
        ("bucket=000001", 8, list(range(first + 12, first + 20))),
        ("bucket=000002", 4, list(range(first + 20, first + 24))),
    ]
    assert [o.path for o in manifest.dead_letters] == ["bucket=000000"]
    for number in range(24):
        proof = lake.proof(number)
        assert proof.status == "complete"
        [contribution] = proof.runs
        assert [o.key for o in contribution.objects] == [o.key for o in manifest.objects if first + number in o.hours]
    report = lake.audit(deep=True)
    assert (report.verdict, report.findings) == ("clean", ())
    # A rebuild removes what it replaces, and nothing is left over.
    lake.rebuild(run)
    assert len(lake.stored()) == 5
    assert all("+r1." in key for key in lake.stored())
    assert lake.audit(deep=True).verdict == "clean"

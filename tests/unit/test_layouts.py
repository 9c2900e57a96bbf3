"""Layouts: the form of keys, and whole archives that are filed by another layout than `hourly`."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ConfigError, DocumentError
from kafka_archiver.model.layouts.form import PathForm, fixed
from kafka_archiver.model.layouts.hourly import hour_path
from kafka_archiver.model.layouts.registry import LAYOUTS, form_of, named, place_in, plain_place, resolve
from kafka_archiver.model.layouts.tokens import FIXED, TextToken, TopicToken
from kafka_archiver.model.object_keys import ObjectName, object_key, revision_in, split_object_key
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.pipeline.base import PART, Marks
from kafka_archiver.records.pipeline.filing.paths import Paths
from kafka_archiver.records.writer.finish_uploads import complete
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.values.columns import column
from kafka_archiver.values.documents import Value
from kafka_archiver.values.intervals import LAST_MS, hour_of
from kafka_archiver.values.ranges import Range, TopicPartition
from scripts.stack.paths import ROOT
from tests.support.chunks import HOUR, Row, batch, chunk_of, cut, facts, new_store, read_values, write
from tests.support.lake import Lake

pytestmark = pytest.mark.unit

TIMES = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-1, 0, HOUR - 1, HOUR, LAST_MS, LAST_MS + 1])
TOPICS = st.text("abr1+.-_%~é", min_size=1, max_size=8)
# One of each layout: what `store.layout` is, and the key of topic orders, partition 3, chunk start 42, filed by a
# record of 2026-11-21T05:00:00Z with the value {"country": "DE"}.
EVERY: list[tuple[Any, str]] = [
    ("hourly", "orders/date=2026-11-21/hour=05/orders+3+00000000000000000042"),
    ("daily", "orders/date=2026-11-21/orders+3+00000000000000000042"),
    ("topic_partition", "orders/partition=3/orders+3+00000000000000000042"),
    ({"offsets": 40}, "orders/partition=3/offsets=00000000000000000040/orders+3+00000000000000000042"),
    ({"path": "{topic}/{yyyy}/{D}", "missing": "null"}, "orders/2026/325/orders+3+00000000000000000042"),
    ({"fields": ["value.country"]}, "orders/country=DE/orders+3+00000000000000000042"),
    ({"fields": ["value.country"], "style": "values"}, "orders/DE/orders+3+00000000000000000042"),
    ("confluent_default", "orders/partition=3/orders+3+0000000042"),
    ({"name": "confluent_field", "fields": ["value.country"]}, "orders/country=DE/orders+3+0000000042"),
    (
        {"name": "confluent_time", "path_format": "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"},
        "orders/year=2026/month=11/day=21/hour=05/orders+3+0000000042",
    ),
    ("confluent_daily", "orders/year=2026/month=11/day=21/orders+3+0000000042"),
    ("confluent_hourly", "orders/year=2026/month=11/day=21/hour=05/orders+3+0000000042"),
    (
        {"name": "confluent_default", "directory_delimiter": "-", "file_delimiter": ".", "zero_pad": 3},
        "orders-partition=3-orders.3.042",
    ),
    ("zooz", "orders/date=2026-11-21/hour=05/3_42"),
    ("lenses", "orders/3/42"),
    ({"name": "lenses_keys_and_values", "fields": ["value.country"]}, "country=DE/orders(3_42)"),
    ({"name": "lenses_values", "fields": ["value.country"]}, "DE/orders(3_42)"),
    ("deviantart", "2026-11-21/orders-00003-000000000042"),
]


def settings_of(layout: Any, **more: Any) -> Settings:
    name, options = named(layout)
    return resolve(Settings(layout=name, layout_options=options, value_decode="json", **more))


def key_of(settings: Settings, rows: Sequence[Row], extension: str = "", **place: Any) -> list[str]:
    """The key of each row's object."""
    chunk = chunk_of(42, 10**6).model_copy(update=place)
    form = form_of(settings)
    paths = Paths(form, chunk, settings)
    parts = paths.parts(batch(rows), Marks())
    own = ObjectName(chunk.topic, chunk.partition, chunk.start, chunk.generation)
    return [form.key(own, paths.path(part), extension) for part in parts.tolist()]


@pytest.mark.parametrize(("layout", "expected"), EVERY)
def test_the_key_of_each_layout(layout: Any, expected: str) -> None:
    settings = settings_of(layout)
    assert key_of(settings, [Row(42, 1_795_237_200_000, value=b'{"country":"DE"}')], ".x.gz") == [f"{expected}.x.gz"]
    # A plan has all options, and gives the same form again.
    again = Settings.model_validate_json(settings.model_dump_json())
    assert again == settings == resolve(settings)


def test_a_wrong_item_of_a_list_is_the_only_complaint() -> None:
    with pytest.raises(ConfigError) as failure:
        settings_of({"fields": ["value."]})
    message = (
        "`store.layout.fields.0.field`: expected a field like value.country, key, key.id or header.x, found 'value.'"
    )
    assert str(failure.value) == message


@given(
    layout=st.sampled_from([layout for layout, _ in EVERY]),
    topic=TOPICS,
    numbers=st.tuples(*[st.integers(0, 10**6)] * 4),
    schemas=st.sampled_from(["", "+s7", "+k1", "+k1+s2"]),
    extension=st.sampled_from([".jsonl.gz", ".index.json", ""]),
    path=st.sampled_from([1_795_237_200_000, -1]),
)
def test_a_place_is_read_from_each_key(
    layout: Any, topic: str, numbers: tuple[int, ...], schemas: str, extension: str, path: int
) -> None:
    settings = settings_of(layout)
    place = ObjectName(topic, *numbers)
    form = form_of(settings)
    chunk = chunk_of(place.start, place.start + 1, topic).model_copy(update={"partition": place.partition})
    paths = Paths(form, chunk, settings)
    parts = paths.parts(batch([Row(place.start, path, value=b'{"country":"a/b+c"}')]), Marks())
    key = form.key(place, paths.path(int(parts[0])), extension, schemas)
    assert place_in(settings, key) == place
    assert revision_in(key) == place.revision
    assert key.startswith(form.prefix(topic))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("{topic}/{partition:5}/{yyyy}", ""),
        ("{partition:2}/{topic}", "{partition}-{start}"),
        ("{topic}", "{partition}-{start:5}_{start}"),
        ("{topic}", "{start}_{topic}g{topic}-{partition}x"),
    ],
)
@given(topic=TOPICS | st.just("_ledger"), numbers=st.tuples(*[st.integers(0, 10**6)] * 4))
def test_a_place_may_be_in_a_key_twice_with_other_zeros(
    path: str, name: str, topic: str, numbers: tuple[int, ...]
) -> None:
    settings = settings_of({"path": path}, name=name)
    place = ObjectName(topic, *numbers)
    form = form_of(settings)
    folder = "".join(fixed(piece, place) if isinstance(piece, FIXED) else "2026" for piece in form.path)
    assert place_in(settings, form.key(place, folder, ".gz")) == place
    # Folders of another partition are none of ours.
    wrong = "".join(fixed(p, place._replace(partition=10**7)) if isinstance(p, FIXED) else "2026" for p in form.path)
    assert wrong == folder or place_in(settings, form.key(place, wrong, ".gz")) is None


def test_the_keys_of_hourly_are_those_of_earlier_releases() -> None:
    form, place = form_of(Settings()), ObjectName("a b", 3, 42, 1, 2)
    key = form.key(place, hour_path(5), ".avro", "+s7")
    assert key == object_key(place, hour_path(5), ".avro", schemas="+s7")
    assert plain_place(key) == split_object_key(key) == place
    # Another archive further down has its own.
    assert plain_place(key.replace("date=", "inner/date=")) is None


@given(st.lists(TIMES, max_size=20) | st.lists(st.integers(5 * HOUR, 6 * HOUR - 1), max_size=20))
def test_hourly_files_each_record_in_the_hour_of_its_time(times: list[int]) -> None:
    paths = Paths(form_of(Settings()), chunk_of(0, 20), Settings())
    parts = paths.parts(batch([Row(n, time) for n, time in enumerate(times)]), Marks())
    assert [paths.path(part) for part in parts.tolist()] == [hour_path(hour_of(time)) for time in times]


def test_a_plan_of_a_layout_that_this_release_lacks_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"store\.layout: expected hourly .*, found 'weekly'"):
        form_of(Settings(layout="weekly"))


def test_a_path_of_no_hour_needs_hours_in_the_manifest() -> None:
    [entry] = complete([write(chunk_of(0, 1), cut([Row(0, 0)], 1), store := new_store())], store)
    assert list(entry.hours) == [0]
    strange = entry.model_copy(update={"path": "year=2026"})
    with pytest.raises(DocumentError, match="an object in 'year=2026' without `rows_by_hour`, which is not the path"):
        list(strange.hours)
    assert list(strange.model_copy(update={"rows_by_hour": ((None, 1),)}).hours) == [None]


class Tens:
    """The tens of an offset."""

    def labels(self, batch: pa.RecordBatch) -> list[str | None]:
        return [f"{offset // 10:06d}" for offset in column(batch, "offset").tolist()]


class Buckets:
    """A layout of another distribution."""

    name = "buckets"
    options = Value

    def form(self, options: Value) -> PathForm:
        return PathForm((TopicToken(), TextToken("/bucket="), Tens()))


@pytest.fixture
def buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a layout as if another distribution were installed."""
    monkeypatch.setitem(LAYOUTS, "buckets", Buckets())


@pytest.mark.usefixtures("buckets", "small_parts")
@pytest.mark.parametrize("open_objects", [1, 64])
def test_the_writer_files_by_what_the_layout_says(open_objects: int) -> None:
    draw = np.random.default_rng(7)
    offsets = np.cumsum(draw.integers(1, 4, 200)).tolist()
    rows = [Row(o, int(draw.integers(0, 3)) * HOUR, value=b"%d" % o if o % 9 else b"bad\n") for o in offsets]
    chunk, store = chunk_of(0, offsets[-1] + 1), new_store()
    options = {"layout": "buckets", "bad_record": "dead_letter", "part_bytes": 50}
    limits = Limits(memory_bytes=100, open_objects=open_objects, upload_threads=1)
    result = write(chunk, cut(rows, 17), store, limits, **options)
    assert facts(result) == facts(write(chunk, cut(rows, 200), **options))
    expected: dict[str, list[bytes]] = {}
    hours: dict[str, dict[int, int]] = {}
    for row in rows:
        bad = row.value == b"bad\n"
        # Dead letters are filed by Kafka's time.
        folder = (
            f"_dead_letter/orders/{hour_path(row.timestamp // HOUR)}"
            if bad
            else f"orders/bucket={row.offset // 10:06d}"
        )
        expected.setdefault(folder, []).append(b"%d" % row.offset)
        counted = hours.setdefault(folder, {})
        counted[row.timestamp // HOUR] = counted.get(row.timestamp // HOUR, 0) + 1
    entries = complete([result], store)
    by_path = {
        entry.key.rpartition("/")[0]: [
            line if line.isdigit() else line.split(b'"offset":')[1].split(b",")[0] for line in lines
        ]
        for entry in entries
        for lines in [read_values(store.get(entry.key) or b"")]
    }
    assert by_path == expected
    for entry in entries:
        assert {hour: entry.rows_in(hour) for hour in entry.hours} == hours[entry.key.rpartition("/")[0]]
    assert all(place_in(Settings(layout="buckets"), o.upload.key) for o in result.objects)
    assert PART not in "".join(map(str, by_path))


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
    without = [*range(first, first + 5), *range(first + 6, first + 10)]
    assert [(o.path, o.rows, list(o.hours)) for o in manifest.objects] == [
        ("bucket=000000", 9, without),
        ("bucket=000001", 2, [first + 10, first + 11]),
        ("bucket=000001", 8, list(range(first + 12, first + 20))),
        ("bucket=000002", 4, list(range(first + 20, first + 24))),
    ]
    assert [o.path for o in manifest.dead_letters] == [hour_path(first + 5)]
    # Hour 5 has only a dead letter.
    for number in set(range(24)) - {5}:
        proof = lake.proof(number)
        assert (proof.status, proof.rows) == ("complete", 1)
        keys = [o.key for run_ in proof.runs for o in run_.objects]
        assert keys == [o.key for o in manifest.objects if first + number in o.hours]
    report = lake.audit(deep=True)
    assert (report.verdict, report.findings) == ("clean", ())
    # A rebuild removes what it replaces, and nothing is left over.
    lake.rebuild(run)
    assert len(lake.stored()) == 5
    assert all("+r1." in key for key in lake.stored())
    assert lake.audit(deep=True).verdict == "clean"


OWN = (ROOT / "tests/support/extensions/layout.py").read_text()
RUNS = """
import uuid
from kafka_archiver.config import parse_archive
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.store.memory import MemoryStore
from tests.support.lake import Lake
name = TopicPartition("orders", 0)
values = [b"a", b"bb", b"ccc", b"dddd", None, b"e"]
odd = {(name, n): {"value": v} for n, v in enumerate(values)}
lake = Lake(MemoryStore(uuid.uuid4().hex), {name: Range(0, 6)}, odd=odd)
yaml = f"archive: {lake.name}\\nsource: {{topics: [orders], settle: 0}}\\nstore: {{url: 's3://b/p', layout: LAYOUT}}\\n"
lake.configure(parse_archive(yaml.replace("LAYOUT", "{name: by_length, most: 2}"), "o.yaml"))
print(sorted((o.path, o.rows) for o in lake.manifest(lake.run(6)).objects))
lake.rebuild("20261120T060000Z")
print(lake.audit(deep=True).findings)
for layout in ("{name: by_length, least: 2}", "one", "other", "none"):
    try:
        print(parse_archive(yaml.replace("LAYOUT", layout), "o.yaml").store.layout)
    except Exception as error:
        print(error)
"""


def test_a_distribution_adds_a_layout_by_an_entry_point(tmp_path: Path) -> None:
    (tmp_path / "by_length.py").write_text(f"{OWN}\nONE = ByLength()\nOTHER = 7\n")
    about = tmp_path / "by_length-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: by-length\nVersion: 1.0\n")
    points = {"by_length": "ByLength", "one": "ONE", "other": "OTHER", "none": "NONE"}
    lines = [f"{name} = by_length:{value}" for name, value in points.items()]
    (about / "entry_points.txt").write_text("\n".join(["[kafka_archiver.layouts]", *lines]))
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", RUNS],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    wrong = "o.yaml: `store.layout`: expected another layout: "
    assert done.stdout.splitlines() == [
        "[('p=0/length=1', 2), ('p=0/length=2', 3), ('p=0/length=__HIVE_DEFAULT_PARTITION__', 1)]",
        "()",
        "o.yaml: `store.layout.least` is not an option: layout by_length has most",
        "one",
        f"{wrong}'other' (by_length:OTHER) is no layout: it has no `name`; found 'other'",
        f"{wrong}'none' (by_length:NONE) cannot be loaded: "
        "attribute error: module 'by_length' has no attribute 'NONE'; found 'none'",
    ], done.stderr

"""The YAML of an archive: what may be left out, and what each mistake is answered with."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafka_archiver.config import archive_files, load_archive, parse_archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats import resolve

SMALLEST = "archive: orders\nsource: {topics: [orders]}\nstore: {url: s3://archive/lake}\n"


def complaint(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_archive(text, "orders.yaml")
    return str(caught.value)


def test_three_keys_are_enough() -> None:
    archive = parse_archive(SMALLEST, "x")
    assert archive.group == "archiver-orders"
    assert archive.schedule == "0 * * * *"
    assert resolve(archive.settings) == Settings()


def test_a_start_may_be_a_time_without_quotes() -> None:
    archive = parse_archive(SMALLEST.replace("[orders]", "[orders], start: 2026-11-01T01:00:00+01:00"), "x")
    assert archive.source.start == datetime(2026, 11, 1, tzinfo=UTC)


def test_a_start_may_be_where_another_group_has_stopped() -> None:
    source = parse_archive(SMALLEST.replace("[orders]", "[orders], start: 'group:connect-x y'"), "x").source
    assert (source.start, source.old_group) == ("group:connect-x y", "connect-x y")
    assert parse_archive(SMALLEST, "x").source.old_group is None


@pytest.mark.parametrize(("text", "meant"), [("5m", timedelta(minutes=5)), ("1w", timedelta(weeks=1)), ("null", None)])
def test_what_is_assumed_of_the_order_of_times_may_be_null(text: str, meant: timedelta | None) -> None:
    archive = parse_archive(f"{SMALLEST}timestamp: {{max_disorder: {text}}}\n", "x")
    assert archive.timestamp.max_disorder == meant


def test_what_is_so_anyway_may_be_said() -> None:
    spelled_out = SMALLEST.replace("[orders]", "[orders], key: {decode: bytes}").replace(
        "lake}", "lake, encryption: none}"
    )
    assert parse_archive(f"{spelled_out}timestamp: {{from: record}}\n", "x") == parse_archive(SMALLEST, "x")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("topics:", "topic:", "orders.yaml: `source.topic` is not a key of an archive"),
        ("archive: orders", "archive: orders\nspark: {driver_records: 0}", "`spark.driver_records` is not a key"),
        ("[orders]", "orders", "`source.topics`: expected a list; found 'orders'"),
        ("[orders]", "[orders], pattern: o", "expected exactly one of `topics` (a list of names) and `pattern`"),
        ("topics: [orders]", "pattern: '('", "a regular expression in `pattern` (missing )"),
        ("[orders]", "[a, a]", "`source`: expected each topic only once in `topics`"),
        ("[orders]", "[orders], start: soon", "`source.start`: expected 'earliest' or 'latest' or a time like 2026-"),
        ("[orders]", "[orders], start: 2026-11-01T00:00:00", "a time needs a zone"),
        ("[orders]", "[orders], start: 'group:'", "or a time like 2026-11-01T00:00:00Z or group:<consumer "
            "group>; found"),
        ("[orders]", "[orders], start: 'group:archiver-orders'", "another group than the archive's own "
            "(archiver-orders)"),
        ("[orders]", "[orders], registry: 7", "`source.registry`: expected the id of an Airflow connection or a map"),
        ("archive: orders", "archive: orders\nalerts: {max_age: 2h}", "`alerts`: expected receivers in `on_fail"),
        ("s3://archive/lake", "/lake", "`store.url`: expected s3://bucket/prefix or az://container/prefix, without"),
        ("s3://archive/lake", "s3://a/_dead_letter", "expected a prefix without the segment `_dead_letter`"),
        ("s3://archive/lake", "s3://a/b/_ledger/m/", "`store.url`: expected a prefix without the segment `_ledger`"),
        ("s3://archive/lake", "s3://a/b, chunk_records: many", "`store.chunk_records`: expected a whole number; found"),
        ("s3://archive/lake", "s3://a/b, chunk_records: true", "`store.chunk_records`: expected a whole number; found"),
        ("[orders]", "[orders], max_value_bytes: true", "`source.max_value_bytes`: expected a whole number; found T"),
        ("[orders]", "[orders], settle: true", "`source.settle`: expected a number; found True"),
        ("s3://archive/lake", "s3://a/b, layout: {offsets: true}", "`store.layout.offsets`: expected a whole number; "
            "found True"),
        ("s3://archive/lake", "s3://a/b, layout: {fields: [{field: key, buckets: true}]}", "`store.layout.fields.0."
            "buckets`: expected a whole number; found True"),
        ("s3://archive/lake", "s3://a/b, layout: {name: confluent_default, zero_pad: true}", "`store.layout.zero_pad`: "
            "expected a whole number; found True"),
        ("archive: orders", "archive: orders\ntransform: {steps: [{mask: {fields: a, keep: true}}]}", "`transform.steps"
            ".0.mask.keep`: expected a whole number; found True"),
        ("archive: orders", "archive: orders\ntransform: {steps: [{hash: {fields: a, key: k, rules: true}}]}",
            "`transform.steps.0.hash.rules`: expected a whole number; found True"),
        ("s3://archive/lake", "s3://a/../b", "`store.url`: expected a prefix without the segments `.` and `..`"),
        ("s3://archive/lake", '"s3://a/b\\n"', "`store.url`: expected a prefix without the segments `.` and `..`"),
        ("topics: [orders]", "topics: !!set {orders}", "`source.topics`: expected a list, found a set (!!set)"),
        ("archive: orders", "archive: orders\n<<: {retries: 1}", "line 2: a merge key (`<<`) is not supported"),
        ("archive: orders", "archive: orders\ntimestamp: {max_disorder: 5}", "`timestamp.max_disorder`: expected a t"),
        ("archive: orders", "archive: orders\ntimestamp: {max_disorder: 8d}", "a second to a week, like 30s, 5m or 1h"),
        ("archive: orders", "archive: orders\ntimestamp: {from: sql}", "`sql` (an expression of Spark's that gives a"),
        ("archive: orders", "archive: orders\ntimestamp: {from: sql, sql: a, unit: ms}", "no `unit` with `from: sql`"),
        ("archive: orders", "archive: orders\ntimestamp: {from: header}", "`header` (a header's name) with `from: h"),
        ("archive: orders", "archive: or/ders", "`archive`: expected text that matches pattern"),
        ("archive: orders", "archive: orders\nschedule: 61 * * * *", "expected a cron expression of five fields"),
        ("archive: orders", "archive: orders\nschedule: '*/5 * * * * *'", "a cron expression of five fields"),
        ("archive: orders", "archive: orders\nschedule: 0 0 1 1 * 0 2030", "a cron expression of five fields"),
        ("archive: orders", "archive: orders\npolicies: {lost_offsets: x}", "expected 'fail' or 'record_loss'; found"),
        ("archive: orders", "archive: orders\narchive: b", "orders.yaml: line 2: key `archive` is given twice"),
        ("archive: orders\n", "", "orders.yaml: `archive` is required"),
        ("archive: orders", "archive: [", "orders.yaml: not YAML: "),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_key_and_what_was_expected(old: str, new: str, message: str) -> None:
    assert message in complaint(SMALLEST.replace(old, new, 1))


def test_every_mistake_is_told_at_once() -> None:
    assert complaint("archive: orders\nsource: {topic: x}\nretries: -1\n").splitlines() == [
        "orders.yaml: `source.topic` is not a key of an archive; did you mean `topics`?",
        "orders.yaml: `store` is required",
        "orders.yaml: `retries`: expected greater than or equal to 0; found -1",
    ]


@pytest.mark.parametrize("text", ["", "- a", "7"])
def test_a_file_that_is_no_mapping_is_a_mistake(text: str) -> None:
    assert "expected a mapping with the keys archive, source and store" in complaint(text)


def test_files_are_found_in_order_and_a_missing_one_is_said(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", ".hidden.yaml", "notes.txt"):
        (tmp_path / name).write_text(SMALLEST)
    assert [p.name for p in archive_files(tmp_path)] == ["a.yml", "b.yaml"]
    with pytest.raises(ConfigError, match="set ARCHIVER_CONFIG_DIR"):
        archive_files(tmp_path / "none")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_archive(tmp_path / "none.yaml")

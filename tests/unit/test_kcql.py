"""Lenses' statements, and the layouts that they mean."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.imports.kcql import Statement, parse
from kafka_archiver.imports.lenses_layout import filing_of
from kafka_archiver.imports.lenses_padding import Padding, padding_of
from kafka_archiver.imports.registry import import_text
from kafka_archiver.messages.errors import ConfigError

NAME = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
QUOTED = st.from_regex(r"`[a-zA-Z0-9 ./*-]{1,8}`", fullmatch=True)
FIELD = st.from_regex(r"(_value|_header|_key)(\.[a-z]{1,4}){1,3}", fullmatch=True)


def only_statement(text: str) -> Statement:
    [statement] = parse(text).statements.values()
    return statement


def test_everything_that_a_statement_may_have() -> None:
    text = """
    -- a comment
    insert into `my-bucket`:`a/b c` select * from `topic.x-1` partitionby _value.a, _header.`x-y.z`, _key, f.g
    STOREAS `CSV_WITHHEADERS` WITHPARTITIONER = Values WITH_FLUSH_SIZE = 1000 WITH_FLUSH_INTERVAL 30 WITH_FLUSH_COUNT=5
    """
    assert only_statement(text) == Statement(
        bucket="my-bucket",
        prefix="a/b c",
        fields=("*",),
        topic="topic.x-1",
        partition_by=(("_value", "a"), ("_header", "x-y.z"), ("_key",), ("f", "g")),
        store_as="CSV_WITHHEADERS",
        options={
            "WITHPARTITIONER": "Values",
            "WITH_FLUSH_SIZE": "1000",
            "WITH_FLUSH_INTERVAL": "30",
            "WITH_FLUSH_COUNT": "5",
        },
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO b SELECT * FROM t", ("b", "", "t")),
        ("INSERT INTO b:p/q SELECT a, b FROM t NOPARTITION", ("b", "p/q", "t")),
        ("INSERT INTO `b:p` SELECT * FROM `*` PROPERTIES()", ("b", "p", "*")),
        ("INSERT INTO b--c:p--q SELECT * FROM t--x\n-- all of it\n", ("b--c", "p--q", "t--x")),
        ("INSERT INTO b:`p q` SELECT * FROM t", ("b", "p q", "t")),
        ("INSERT INTO ${env:B}:a/${file:/b:c} SELECT * FROM t", ("${env:B}", "a/${file:/b:c}", "t")),
        ("INSERT INTO b:p SELECT * FROM 't' STOREAS JSON PROPERTIES ('a.b'=1, 'C'=true,)", ("b", "p", "t")),
    ],
)
def test_addresses_and_topics(text: str, expected: tuple[str, str, str]) -> None:
    statement = only_statement(text)
    assert (statement.bucket, statement.prefix, statement.topic) == expected


@given(
    st.lists(
        st.tuples(
            NAME, st.none() | NAME | QUOTED, NAME | QUOTED, st.lists(FIELD, max_size=3, unique=True), st.booleans()
        ),
        min_size=1,
    )
)
@settings(max_examples=40)
def test_statements_are_read_as_they_were_written(parts: list[tuple[Any, ...]]) -> None:
    texts = []
    for bucket, prefix, topic, fields, flush in parts:
        by = f" PARTITIONBY {', '.join(fields)}" if fields else ""
        count = " WITH_FLUSH_COUNT = 7" if flush else ""
        texts.append(f"INSERT INTO {bucket}{f':{prefix}' if prefix else ''} SELECT * FROM {topic}{by}{count}")
    statements = list(parse(";\n".join(texts) + ";").statements.values())
    assert len(statements) == len(parts)
    for statement, (bucket, prefix, topic, fields, flush) in zip(statements, parts, strict=True):
        assert statement.bucket == bucket
        assert statement.prefix == (prefix or "").strip("`")
        assert statement.topic == topic.strip("`")
        assert [".".join(path) for path in statement.partition_by] == fields
        assert statement.options == ({"WITH_FLUSH_COUNT": "7"} if flush else {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "KCQL: expected INSERT INTO bucket:prefix SELECT * FROM topic …; found nothing"),
        ("UPSERT INTO b SELECT * FROM t", "statement 1: expected INSERT; found 'UPSERT'"),
        ("INSERT INTO b c SELECT * FROM t", "statement 1: expected SELECT; found 'c'"),
        ("INSERT INTO", "statement 1: expected a bucket; found 'the end'"),
        ("INSERT INTO `:p` SELECT * FROM t", "statement 1: expected a bucket; found ':p'"),
        ("INSERT INTO b SELECT * FROM t PARTITIONBY .", "statement 1: expected a field; found '.'"),
        ("INSERT x; UPSERT", "statement 1: expected INTO; found 'x'\nKCQL, statement 2: expected INSERT"),
        ("INSERT INTO b SELECT * FROM t WITHTAGS x", "WITH_FLUSH_COUNT, WITH_FLUSH_SIZE"),
        ("INSERT INTO b SELECT * FROM t PARTITIONBY", "statement 1: expected a field; found 'the end'"),
        ("INSERT INTO b:p:q SELECT * FROM t", "expected one colon, between bucket and prefix; found 'b:p:q'"),
        ("INSERT INTO b SELECT * FROM `t", "statement 1: expected the end of the quote; found '`t'"),
        ("INSERT INTO b SELECT * FROM t PROPERTIES ('a' 1)", "statement 1: expected =; found '1'"),
    ],
)
def test_a_mistake_names_the_statement_and_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert message in str(caught.value)


KV = "lenses_keys_and_values"
MISSING = {"missing": "null", "null_name": "[missing]"}


@pytest.mark.parametrize(
    ("by", "keys_too", "padding", "expected"),
    [
        ("", None, Padding(), ({"name": "lenses", "zero_pad": 12}, "p/q", None)),
        ("", False, Padding(None), ({"name": "lenses"}, "p/q", None)),
        ("", None, Padding(9, 4), ({"name": "lenses", "zero_pad": 9, "zero_pad_partition": 4}, "p/q", None)),
        ("", True, Padding(9, 4), ({"path": "topic={topic}/partition={partition:4}"}, "p/q", "{start:9}")),
        (
            "PARTITIONBY _value.a.b, c",
            None,
            Padding(None),
            ({"name": KV, "fields": [{"field": "value.a.b", "as": "a.b"}, "value.c"], **MISSING}, "p/q", None),
        ),
        (
            "PARTITIONBY _key, _header.h",
            False,
            Padding(None),
            ({"name": "lenses_values", "fields": ["key", "header.h"]}, "p/q", None),
        ),
        (
            "PARTITIONBY _key.id",
            False,
            Padding(9),
            ({"name": "lenses_values", "fields": ["key.id"], **MISSING, "zero_pad": 9}, "p/q", None),
        ),
        (
            "PARTITIONBY _topic, _partition, _value.a",
            True,
            Padding(12, 3),
            (
                {"path": "topic={topic}/partition={partition:3}/a={value.a}", **MISSING},
                "p/q",
                "{topic}({partition:3}_{start:12})",
            ),
        ),
        # Two folders of one name, which the named layouts refuse.
        (
            "PARTITIONBY _key.id, _value.id",
            True,
            Padding(),
            ({"path": "id={key.id}/id={value.id}", **MISSING}, "p/q", "{topic}({partition}_{start:12})"),
        ),
        ("NOPARTITION", None, Padding(), ({"path": "q"}, "p", "{topic}({partition}_{start:12})")),
        # No path of ours begins with _.
        (
            "PARTITIONBY _date.yyyy, _header._x",
            None,
            Padding(),
            ({"path": "date={yyyy}/_x={header._x}"}, "p/q", "{topic}({partition}_{start:12})"),
        ),
    ],
)
def test_the_layout_of_a_statement(
    by: str, keys_too: bool | None, padding: Padding, expected: tuple[dict[str, Any], str, str | None]
) -> None:
    filing = filing_of(only_statement(f"INSERT INTO b:p/q SELECT * FROM t {by}"), keys_too, padding)
    assert (filing.layout, filing.prefix, filing.name) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO b SELECT * FROM t NOPARTITION", "NOPARTITION needs a prefix without braces"),
        ("INSERT INTO b:p SELECT * FROM t PARTITIONBY _header", "expected a path after _header, _value and _date"),
        ("INSERT INTO b:p SELECT * FROM t PARTITIONBY _value", "expected a path after _header, _value and _date"),
        ("INSERT INTO b:p SELECT * FROM t PARTITIONBY _topic.x", "expected a path after _header, _value and _date"),
        ("INSERT INTO b:p SELECT * FROM t PARTITIONBY _header.a.b", "a field within a header has no place"),
    ],
)
def test_what_no_layout_is(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        filing_of(only_statement(text), None, Padding())


@pytest.mark.parametrize(
    ("options", "strategy", "length", "expected"),
    [
        ({}, "", "", Padding(12)),
        ({}, "NoOp", "5", Padding(None)),
        ({}, "LeftPad", "5", Padding(5)),
        ({}, "LeftPad", "-1", Padding(12)),
        ({}, "LeftPad", "0", Padding(None)),
        # Without a strategy the connector ignores the length.
        ({}, "", "5", Padding(12)),
        ({"padding.length.partition": "4"}, "", "", Padding(None, 4)),
        ({"padding.length.partition": "4", "padding.length.offset": "9"}, "", "", Padding(9, 4)),
        ({"padding.type": "NoOp", "padding.length.offset": "9"}, "", "", Padding(None)),
    ],
)
def test_zeros_in_names(options: dict[str, str], strategy: str, length: str, expected: Padding) -> None:
    assert padding_of(options, strategy, length) == expected


@pytest.mark.parametrize(
    ("options", "strategy", "why"),
    [
        ({}, "Middle", "is none of LeftPad, RightPad and NoOp"),
        ({}, "RightPad", "RightPad puts zeros behind a number"),
        ({"padding.type": "RightPad"}, "", "RightPad puts zeros behind a number"),
        ({"padding.type": "both"}, "", "LeftPad is the default"),
        ({"padding.char": "x"}, "", "only zeros stand in front here"),
        ({"padding.length": "9"}, "", "padding.length: no such option"),
        ({"padding.length.topic": "9"}, "", "only offset and partition have a length"),
        ({"padding.length.offset": "many"}, "", "expected a whole number up to 40"),
        (
            {"padding.length.offset": "9"},
            "NoOp",
            "the connector refuses padding in its keys and in PROPERTIES together",
        ),
    ],
)
def test_padding_that_is_not_the_same_is_told(options: dict[str, str], strategy: str, why: str) -> None:
    [text] = padding_of(options, strategy, "").odd
    assert why in text


LINES = {"separator": "\n", "extension": ".text"}


@pytest.mark.parametrize(
    ("clause", "store"),
    [
        ("", {"format": "jsonl"}),
        ("STOREAS `PARQUET`", {"format": "parquet", "content": "record"}),
        ("STOREAS `CSV`", {"format": "csv", "options": {"header": False}}),
        ("STOREAS `Csv_WithHeaders`", {"format": "csv"}),
        ("STOREAS `TEXT`", {"format": "bytes", "options": LINES}),
        ("STOREAS `BYTES`", {"format": "bytes", "options": {"extension": ".bytes"}, "chunk_records": 1}),
        ("STOREAS `JSON` PROPERTIES ('store.envelope'=true)", {"format": "jsonl", "content": "record"}),
        ("PROPERTIES ('flush.count'=9)", {"format": "jsonl", "chunk_records": 9}),
        ("WITH_FLUSH_COUNT = 9", {"format": "jsonl", "chunk_records": 9}),
    ],
)
def test_what_a_statement_stores(clause: str, store: dict[str, Any]) -> None:
    text = f"name=n\ntopics=t\nconnect.s3.kcql=INSERT INTO b:p SELECT * FROM t {clause}\n"
    imported, _ = import_text(text, "file")
    expected = {"url": "s3://b/p", **store, "layout": {"name": "lenses", "zero_pad": 12}, "codec": "none"}
    assert imported.drafts[0].content["store"] == expected


@pytest.mark.parametrize("form", ["XML", "BYTES_ValueOnly", "ORC"])
def test_a_format_that_the_connector_does_not_have_makes_no_archive(form: str) -> None:
    text = f"name=n\ntopics=t\nconnect.s3.kcql=INSERT INTO b:p SELECT * FROM t STOREAS `{form}`\n"
    with pytest.raises(ConfigError, match=f"KCQL, statement 1: STOREAS {form.upper()}: expected JSON, AVRO"):
        import_text(text, "file")

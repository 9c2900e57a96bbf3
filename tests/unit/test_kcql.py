"""Lenses' statements, and the layouts that they mean."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.errors import ConfigError
from kafka_archiver.imports.kcql import Statement, parse
from kafka_archiver.imports.lenses_layout import Padding, layout_of, padding_of
from kafka_archiver.imports.registry import import_text

NAME = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
QUOTED = st.from_regex(r"`[a-zA-Z0-9 .:/*-]{1,8}`", fullmatch=True)
FIELD = st.from_regex(r"(_value|_header|_key)(\.[a-z]{1,4}){1,3}", fullmatch=True)


def one(text: str) -> Statement:
    [found] = parse(text).statements.values()
    return found


def test_everything_that_a_statement_may_have() -> None:
    text = """
    -- a comment
    insert into `my-bucket`:`a/b c` select * from `topic.x-1` partitionby _value.a, _header.`x-y.z`, _key, f.g
    STOREAS `CSV_WITHHEADERS` WITHPARTITIONER = Values WITH_FLUSH_SIZE = 1000 WITH_FLUSH_INTERVAL 30 WITH_FLUSH_COUNT=5
    """
    assert one(text) == Statement(
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
    found = one(text)
    assert (found.bucket, found.prefix, found.topic) == expected


@given(
    st.lists(
        st.tuples(NAME, st.none() | NAME | QUOTED, NAME | QUOTED, st.lists(FIELD, max_size=3), st.booleans()),
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
    found = list(parse(";\n".join(texts) + ";").statements.values())
    assert len(found) == len(parts)
    for statement, (bucket, prefix, topic, fields, flush) in zip(found, parts, strict=True):
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
        ("INSERT INTO b SELECT * FROM `t", "statement 1: expected the end of the quote; found '`t'"),
        ("INSERT INTO b SELECT * FROM t PROPERTIES ('a' 1)", "statement 1: expected =; found '1'"),
    ],
)
def test_a_mistake_names_the_statement_and_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("by", "keys_too", "padding", "expected"),
    [
        ("", True, Padding(), ({"name": "lenses", "zero_pad": 12}, None)),
        ("", True, Padding(None), ({"name": "lenses"}, None)),
        ("", True, Padding(9, 4), ({"name": "lenses", "zero_pad": 9, "zero_pad_partition": 4}, None)),
        (
            "_value.a.b, c",
            True,
            Padding(None),
            ({"name": "lenses_keys_and_values", "fields": ["value.a.b", "value.c"]}, None),
        ),
        ("_key, _header.h", False, Padding(None), ({"name": "lenses_values", "fields": ["key", "header.h"]}, None)),
        ("_key.id", False, Padding(9), ({"name": "lenses_values", "fields": ["key.id"], "zero_pad": 9}, None)),
        (
            "_topic, _date.yyyy-MM, _value.a",
            True,
            Padding(),
            ({"path": "topic={topic}/date={yyyy-MM}/a={value.a}"}, "{topic}({partition}_{start:12})"),
        ),
    ],
)
def test_the_layout_of_a_statement(by: str, keys_too: bool, padding: Padding, expected: Any) -> None:
    statement = one(f"INSERT INTO b SELECT * FROM t {'PARTITIONBY ' + by if by else ''}")
    assert layout_of(statement, keys_too, padding) == expected


@pytest.mark.parametrize(
    ("options", "strategy", "length", "expected"),
    [
        ({}, "", "", Padding(12)),
        ({}, "NoOp", "5", Padding(None)),
        ({}, "LeftPad", "5", Padding(5)),
        # Without a strategy the connector ignores the length.
        ({}, "", "5", Padding(12)),
        ({"padding.length.partition": "4"}, "", "", Padding(None, 4)),
        ({"padding.length.partition": "4", "padding.length.offset": "9"}, "", "", Padding(9, 4)),
        ({"padding.type": "RightPad"}, "", "", Padding(12, None, right=True)),
        ({"padding.type": "NoOp", "padding.length.offset": "9"}, "", "", Padding(None)),
    ],
)
def test_zeros_in_names(options: dict[str, str], strategy: str, length: str, expected: Padding) -> None:
    assert padding_of(options, strategy, length) == expected


@pytest.mark.parametrize(
    ("clause", "store"),
    [
        ("", {"format": "jsonl"}),
        ("STOREAS `PARQUET`", {"format": "parquet", "content": "record"}),
        ("STOREAS `CSV`", {"format": "csv", "options": {"header": False}}),
        ("STOREAS `BYTES`", {"format": "bytes", "chunk_records": 1}),
        ("STOREAS `BYTES_ValueOnly`", {"format": "bytes", "chunk_records": 1}),
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

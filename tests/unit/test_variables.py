"""Environment variables in the values of a YAML."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.config import parse_archive
from kafka_archiver.config.yaml_text import read_yaml
from kafka_archiver.messages.errors import ConfigError
from scripts.stack.paths import ROOT

SMALLEST = "archive: orders\nsource: {topics: [orders]}\nstore:\n  url: s3://archive/lake\n"
NO_BRACES = st.text().filter(lambda text: not {"{", "}", "$"} & {*text})


def read(text: str, **environ: str) -> Any:
    return read_yaml(text, environ).content


def complaint(text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_archive(text, "orders.yaml", environ)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${TEXT}", "lake"),
        ("s3://${TEXT}/${NUMBER}", "s3://lake/7"),
        ("${NONE:-a-b c}", "a-b c"),
        ("${EMPTY:-x}", "x"),
        ("${TEXT:-x}", "lake"),
        ("${NONE:-}", ""),
        ("${EMPTY}", ""),
        ("$${TEXT}", "${TEXT}"),
        ("a$$b$ $TEXT", "a$$b$ $TEXT"),
        # An unquoted value has the type that its text would have.
        ("${NUMBER}", 7),
        ("${NONE:-7}", 7),
        ("${YES}", True),
        ("${NULL}", None),
        ("'${NUMBER}'", "7"),
        ('"${YES}"', "true"),
        ("${LIST}", ["a", "b"]),
        ("'${LIST}'", "[a, b]"),
        ("${MAP}", {"a": "${TEXT}"}),
        # The value of a variable is not read again, and cannot add keys.
        ("${DOLLAR}", "${TEXT}"),
        ("${LINES}", "a\nkey: b # c"),
        # A pattern of paths is text.
        ("${NONE:-{topic}/{yyyy}}", "{topic}/{yyyy}"),
        ("'${NONE:-{topic}/x}'", "{topic}/x"),
        ("${PATTERN}", "{topic}"),
        ("${NONE:-{}}", {}),
    ],
)
def test_a_variable_stands_for_its_value(value: str, expected: Any) -> None:
    environ = {
        "TEXT": "lake",
        "NUMBER": "7",
        "EMPTY": "",
        "YES": "true",
        "NULL": "null",
        "LIST": "[a, b]",
        "MAP": "{a: '${TEXT}'}",
        "DOLLAR": "${TEXT}",
        "LINES": "a\nkey: b # c",
        "PATTERN": "{topic}",
    }
    assert read(f"key: {value}\nother: 1", **environ) == {"key": expected, "other": 1}


@given(value=NO_BRACES, default=NO_BRACES, before=NO_BRACES)
def test_text_is_never_changed_on_the_way(value: str, default: str, before: str) -> None:
    text = f"{before}${{A}}${{B:-{default}}}$${{A}}"
    quoted = "'" + text.replace("'", "''") + "'"
    # YAML folds line breaks, and has not all characters.
    if re.fullmatch(r"[ -~]*", before + default):
        assert read(f"key: {quoted}", A=value) == {"key": f"{before}{value}{default}${{A}}"}


def test_an_alias_has_the_same_value_at_both_places() -> None:
    assert read("a: &x\n  - ${A}\nb: *x\nc: &y ${A}\nd: *y", A="7") == {"a": [7], "b": [7], "c": 7, "d": 7}


def test_an_archive_of_variables_is_like_any_other() -> None:
    text = (
        "archive: ${NAME}\nsource:\n  topics: ${TOPICS}\nstore:\n  url: s3://${BUCKET}/lake\nretries: ${RETRIES:-5}\n"
    )
    archive = parse_archive(text, "x", {"NAME": "orders", "TOPICS": "[a, b]", "BUCKET": "archive"})
    same = "archive: orders\nsource: {topics: [a, b]}\nstore: {url: s3://archive/lake}\nretries: 5\n"
    assert archive == parse_archive(same, "x")
    assert archive.settings == parse_archive(same, "x").settings


@pytest.mark.parametrize("topics", ["a,b", "[a, b]", "a, b,"])
def test_a_list_of_one_variable_has_commas_or_brackets(topics: str) -> None:
    for value in ("${TOPICS}", f"${{NONE:-{topics}}}"):
        text = SMALLEST.replace(" {topics: [orders]}", f"\n  topics: {value}")
        archive = parse_archive(text, "x", {"TOPICS": topics})
        assert archive.source.topics == ("a", "b")


def test_the_example_of_the_docs() -> None:
    section = (ROOT / "docs/configure.md").read_text().partition("## Environment variables")[2]
    text = section.partition("```yaml\n")[2].partition("```")[0]
    archive = parse_archive(text, "x", {"ORDERS_TOPICS": "[orders, returns]", "BUCKET": "b", "STAGE": ""})
    assert (archive.source.topics, archive.store.url, archive.retries) == (("orders", "returns"), "s3://b/test", 3)


def test_every_missing_variable_is_named_with_file_key_and_line() -> None:
    text = SMALLEST.replace("lake", "${PREFIX}") + "tags: ['${TEAM}']\nretries: ${RETRIES:-3}\n"
    missing = "is missing; set it where Airflow's scheduler, DAG processor and workers run, or give a default: "
    assert complaint(text).splitlines() == [
        f"orders.yaml: `store.url` (line 4): the environment variable PREFIX {missing}${{PREFIX:-default}}",
        f"orders.yaml: `tags.0` (line 5): the environment variable TEAM {missing}${{TEAM:-default}}",
    ]


@pytest.mark.parametrize("wrong", ["${}", "${A", "${A-b}", "${1A}", "${A:-${B}}", "${A:-{}", "${ A }"])
def test_what_is_no_variable_is_refused(wrong: str) -> None:
    message = complaint(f"{SMALLEST}description: '{wrong}'\n", A="a", B="b")
    assert "`description` (line 5): `${` begins an environment variable, but what follows" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("retries: ${A}", "`retries`: expected a whole number; found the value of A (not shown, because it may be a"),
        ("description: [a]\ntags: ['${A}', 7]", "`tags.1`: expected text; found 7"),
        ("tags: ['${A}${A}${A}${A}${A}${A}${A}${A}${A}${A}']", "`tags.0`: expected at most 100 characters; found the"),
        ("${A}: 1", "`…` (line 5): a key cannot have environment variables, only a value can"),
        ("tags: [${A}]", "not YAML: line 5, column 9: "),
        ("tags: [${A}]", "(inside [] or {}, a value with ${NAME} needs quotes)"),
        ("tags: ${B}", "`tags` (line 5): B is not YAML: line 1"),
        ("tags: '${B}'", "`tags`: expected a list; found the value of B (not shown"),
        ("spark: {conf: '${A}'}", "`spark.conf`: expected a mapping of properties; found the value of A (not shown"),
    ],
)
def test_a_mistake_names_the_variable_and_never_shows_its_value(text: str, message: str) -> None:
    complained = complaint(f"{SMALLEST}{text}\n", A="hunter2hunter2", B="[hunter2hunter2")
    assert message in complained
    assert "hunter2" not in complained


def test_credentials_in_a_variable_are_refused_as_in_the_yaml() -> None:
    message = complaint(SMALLEST.replace("s3://archive/lake", "${URL}"), URL="s3://key:hunter2@archive/lake")
    assert "`store.url`: expected s3://bucket/prefix or az://container/prefix, without credentials" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("deep", ["[", "{a: ", "- ", "? "])
def test_a_tree_of_any_depth_is_an_error_and_ends_no_process(deep: str) -> None:
    with pytest.raises(ConfigError, match="expected at most 100 levels"):
        read(deep * 100_000)

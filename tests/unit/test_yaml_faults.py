"""The place of a fault in a YAML: its line, and the line's text without what may be a secret."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.config import parse_archive
from kafka_archiver.config.yaml_text import located
from kafka_archiver.messages.yaml_faults import Fault, FaultyYamlError

pytestmark = pytest.mark.unit
SECRET = "hunter2-hunter2"
NAMES = st.from_regex(r"[a-z]{1,3}(\.[a-z]{5})?", fullmatch=True)
NAMES_BELOW = st.from_regex(r"[a-z]{4}", fullmatch=True)
TREES = st.recursive(
    st.integers(0, 9),
    lambda below: st.lists(below, min_size=1, max_size=3) | st.dictionaries(NAMES_BELOW, below, min_size=1, max_size=3),
    max_leaves=6,
)


def places(tree: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    below = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in below:
        yield (*above, str(key))
        yield from places(value, (*above, str(key)))


@settings(max_examples=40)
@given(st.dictionaries(NAMES, TREES, min_size=1, max_size=4), st.data())
def test_a_fault_is_at_the_line_of_its_last_key(tree: dict[str, Any], data: st.DataObject) -> None:
    text = yaml.safe_dump(tree, sort_keys=False)
    keys = data.draw(st.sampled_from(list(places(tree))))
    fault = located(text, Fault("wrong", ".".join(keys)))
    assert fault.line is not None
    if not keys[-1].isdigit():
        assert f"{keys[-1]}:" in text.splitlines()[fault.line - 1]
    # A key that the YAML lacks is missing below the last one that it has.
    assert located(text, Fault("`x` is required", ".".join((*keys, "x-y")))).line == fault.line


@pytest.mark.parametrize(
    ("text", "line", "shown"),
    [
        ("archive: a\nsource: {topics: [a]}\nstore: {url: s3://b/c}\nschedule: never\n", 4, "schedule: never"),
        ("archive: a\nsource:\n  kafka:\n    sasl.password: [1]\n  topics: [a]\nstore: {url: s3://b/c}\n", 4, None),
        ("archive: a\nsource:\n  topics: a b\nstore: {url: s3://b/c}\n", 3, None),
        ("archive: a\nsource: {topics: [a]}\nstore:\n  layout: daily\n", 3, "store:"),
        (f"archive: a\nsource: {{topics: [a]\nsecret: {SECRET}\n", 3, "secret: …"),
        (f"archive: a\npassword:{SECRET}\n", None, None),
        (f"archive: a\narchive: {SECRET}\n", 2, "archive: …"),
        (f"archive: a\nsource: {{topics: [a]}}\nstore: {{url: s3://b/c}}\ntoken: {SECRET}\n", 4, "token: …"),
        (f"archive: a\nsource: {{topics: [a]}}\nstore: {{url: s3://b/c}}\n{SECRET}: {SECRET}\n", 4, f"{SECRET}: …"),
        ("archive: ${NO_SUCH_VARIABLE}\n", 1, "archive: …"),
    ],
)
def test_a_wrong_yaml_says_at_which_line(text: str, line: int | None, shown: str | None) -> None:
    with pytest.raises(FaultyYamlError) as raised:
        parse_archive(text, "a.yaml", {})
    fault = raised.value.faults[0]
    assert fault.text.startswith("a.yaml: ")
    if line:
        assert fault.line == line, fault
    if shown:
        assert fault.shown == shown
    if SECRET not in (shown or ""):
        assert SECRET not in fault.shown

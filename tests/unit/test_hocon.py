"""HOCON, as far as the configuration of a service has it."""

import pytest

from kafka_archiver.imports.hocon import is_hocon, read_hocon
from kafka_archiver.imports.reading import read_keys
from kafka_archiver.messages.errors import ConfigError

pytestmark = pytest.mark.unit


def test_blocks_pairs_comments_and_references() -> None:
    text = """
    # a comment
    a.b = "x # y // z"   // the rest is a comment
    url = "http://host:1/p"
    c {
      "d" : 1,
      e.f { g = ${?MAYBE} }
      h {
        i = ${SURE}/x
        i2 = ${?MAYBE}
      }
    }
    list += ${x}
    """.replace("e.f { g = ${?MAYBE} }\n", "")
    assert read_hocon(text, "f") == {
        "a.b": "x # y // z",
        "url": "http://host:1/p",
        "c.d": "1",
        "c.h.i": "${env:SURE}/x",
    }


def test_a_default_stays_if_the_variable_need_not_be_there() -> None:
    assert read_hocon('a = "x"\na = ${?A}\n', "f") == {"a": "x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a {\nb = 1\n", "the brace of a has no other brace"),
        ("a {\nb\n}\n", "line 2: expected a block"),
        ("a {\n}\n}\n", "line 3: expected a block"),
    ],
)
def test_what_is_none_is_told_by_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_hocon(text, "f")


@pytest.mark.parametrize("text", ["a=1\nb={\n", "a: {\n  b: 1}\n", "a: 1\nb: 2\n", "[a]\nb = {\n"])
def test_other_texts_are_not_taken_for_it(text: str) -> None:
    assert not is_hocon(text)


def test_a_file_of_it_gives_keys() -> None:
    assert read_keys("app {\n  id = x\n}\n", "f") == {"app.id": "x"}

"""Each `airflow` command in the docs is one that Airflow takes, with these options."""

import re
import shlex
from collections.abc import Iterator

import pytest
from airflow.cli.cli_parser import get_parser

from scripts.stack.paths import ROOT

pytestmark = pytest.mark.dags
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
# What stands for a value that the reader has.
VALUES = {
    "NAME": "orders", "RUN": "20261121T050000Z", "HOUR": "2026-11-21T05", "KEY": "k", "FINDING": "dead-letters:1",
    "OLD_CONNECTION": "kafka_old", "TOPIC:PARTITION:START-END": "orders:0:1-25", "FOLDER": "s3://lake/topics",
}  # fmt: skip


def commands() -> Iterator[tuple[str, str]]:
    """Yield each command with its page: lines of blocks without a language, and quoted code that is a whole command."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [
            line
            for block in re.findall(r"^ *```\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
            for line in block.replace("\\\n", " ").splitlines()
        ]
        for command in [*lines, *re.findall(r"`(airflow [^`\n]+)`", text)]:
            if re.match(r" *airflow ", command):
                yield str(page.relative_to(ROOT)), command.strip()


def argument_lists() -> dict[str, list[str]]:
    """Return the arguments of each command that is whole, without the redirection and the comment behind it."""
    every = {}
    for page, command in commands():
        text = re.split(r" +[>|] +(?!= )| +# ", command)[0].replace("$(", "").replace(")", "")
        words = [VALUES.get(word, word.replace("archive_NAME", "archive_orders")) for word in shlex.split(text)]
        # Names of commands in the text: `airflow archive plan`; and examples with … in place of values.
        is_named = len(words) <= 3 and text == command
        if "…" not in text and not is_named:
            every[f"{page}: {command}"] = words[1:]
    return every


ARGUMENTS = argument_lists()


@pytest.mark.parametrize("command", ARGUMENTS)
def test_a_command_of_the_docs_is_one_that_airflow_takes(command: str) -> None:
    get_parser().parse_args(ARGUMENTS[command])


def test_each_command_that_the_text_only_names_exists() -> None:
    parser = get_parser()
    named = {" ".join(command.split()[1:3]) for _, command in commands()}
    assert len(named) > 25
    for name in sorted(named):
        with pytest.raises(SystemExit) as answer:
            parser.parse_args([*name.split(), "--help"])
        assert answer.value.code == 0, name


def test_the_search_sees_a_wrong_option() -> None:
    with pytest.raises(SystemExit):
        get_parser().parse_args(["archive", "status", "orders", "--no-such-option"])

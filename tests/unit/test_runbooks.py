"""The runbook has a section for each alert, and a line for each problem and error that it promises."""

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.orchestration.alerts.message import ROUTES, Kind, Message
from scripts.stack.paths import ROOT

pytestmark = pytest.mark.unit
ALERTS, STATUS, AUDIT, MESSAGES = (
    (ROOT / "docs" / "runbook" / f"{name}.md").read_text() for name in ("alerts", "status", "audit", "messages")
)
CODE = ROOT / "include" / "kafka_archiver"


def anchors(text: str) -> set[str]:
    """The anchors of a Markdown text's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_each_alert_leads_to_a_section_of_the_guide() -> None:
    assert set(ROUTES) == set(get_args(Kind))
    assert {section for section, _ in ROUTES.values()} <= anchors(ALERTS)
    message = Message(kind="loss", state="event", archive="orders", title="x")
    assert message.lines == ["Guide: docs/runbook/alerts.md#alert-records-were-lost"]


def test_each_section_of_an_alert_belongs_to_one() -> None:
    assert {anchor for anchor in anchors(ALERTS) if anchor.startswith("alert-")} == {
        section for section, _ in ROUTES.values()
    }


def _named(text: str) -> set[str]:
    """Return the names in the first column of a page's tables."""
    return set(re.findall(r"`([a-z -]+)`", "".join(re.findall(r"^\| (.*?) \|", text, re.MULTILINE))))


def _names(*files: Path) -> set[str]:
    """The names of the troubles that this code makes."""
    names = set()
    for file in files:
        names |= set(re.findall(r'(?:problem|warning|say)\(\s*"([a-z ]+)"', file.read_text()))
    return names


def test_each_problem_of_status_has_a_line() -> None:
    in_code = _names(*(CODE / "state" / "status").glob("*.py"))
    assert len(in_code) > 15, "the search finds the troubles no more"
    in_guide = _named(STATUS.split("\n## ")[0])
    assert in_code <= in_guide, sorted(in_code - in_guide)


def test_each_kind_of_finding_of_the_audit_has_a_line() -> None:
    in_code = set()
    for file in (CODE / "audit").rglob("*.py"):
        in_code |= set(re.findall(r'(?:error|warning)\(\s*"([a-z-]+)"', file.read_text()))
    assert len(in_code) > 15, "the search finds the kinds no more"
    in_guide = _named(AUDIT)
    assert in_code <= in_guide, sorted(in_code - in_guide)


def test_each_class_of_error_has_a_line() -> None:
    def below(kind: type) -> set[type]:
        return {subclass for direct in kind.__subclasses__() for subclass in (direct, *below(direct))}

    in_guide = set(re.findall(r"`(\w+Error)`", "".join(re.findall(r"^\| (.*?) \|", MESSAGES, re.MULTILINE))))
    in_code = {kind.__name__ for kind in below(ArchiverError) if kind.__module__ == "kafka_archiver.messages.errors"}
    # The messages of a PermanentError without a class of its own name no class.
    assert in_code - {"PermanentError"} <= in_guide, sorted(in_code - in_guide)


def _messages() -> list[str]:
    """The texts of the package, with … for each value."""
    texts = []
    for file in CODE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return texts


def test_each_message_of_the_guide_is_one_of_the_package() -> None:
    tables = MESSAGES.partition("| you see |")[2]
    quoted = re.findall(r"`(.+?)`", "".join(re.findall(r"^\| (.*?) \|", tables, re.MULTILINE)))
    assert len(quoted) > 40, "the search finds the messages no more"
    messages = [text.replace("`", "") for text in _messages()]
    pieces = {piece.strip() for message in quoted for piece in re.split(r"…|\bN\b|\bM\b|, and (?=Kafka)", message)}
    unknown = {piece for piece in pieces if not any(piece in text for text in messages)}
    assert unknown == set()

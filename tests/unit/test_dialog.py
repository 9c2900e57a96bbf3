"""A command that waits says for what."""

import threading
from collections.abc import Iterator

import pytest

from kafka_archiver.orchestration.terminal import dialog
from kafka_archiver.orchestration.terminal.dialog import announce_wait

pytestmark = pytest.mark.unit


def test_what_takes_long_is_said_and_what_is_known_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialog, "SECONDS", 0.0)
    reported = threading.Event()

    def lines() -> Iterator[str]:
        yield "waiting for the brokers"
        yield "the ledger knows"
        reported.set()

    with announce_wait(lines):
        assert reported.wait(30)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "waiting for the brokers\nthe ledger knows\n")


def test_what_is_fast_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with announce_wait(lambda: iter(["waiting"])):
        pass
    assert capsys.readouterr().err == ""

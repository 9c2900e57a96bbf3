"""How far each run of an archive has come."""

from argparse import ArgumentTypeError
from datetime import datetime

from kafka_archiver.errors import ConfigError
from kafka_archiver.intervals import parse_run_id, run_id
from kafka_archiver.ledger import Ledger
from kafka_archiver.orchestration.options import moment


def states(ledger: Ledger) -> dict[str, str]:
    """Every planned run, oldest interval first: planned, written, committed, or settled (its hours are proved too)."""
    progress = ledger.progress()
    settled = set(progress.runs) if progress else set()
    return {run: _state(run in settled, found) for run, found in ledger.runs().items() if "plan" in found}


def _state(settled: bool, documents: frozenset[str]) -> str:
    if settled:
        return "settled"
    if "commit" in documents:
        return "committed"
    return "written" if "manifest" in documents else "planned"


def find_run(text: str, known: dict[str, str], archive: str) -> str:
    """The run that `text` means: `last`, its name in the ledger, or the start of its interval. Raises ConfigError."""
    if not known:
        raise ConfigError(f"Archive {archive} has no runs yet.")
    runs = list(known)
    if text == "last":
        return runs[-1]
    if text in known:
        return text
    try:
        run = run_id(_start(text))
    except ArgumentTypeError as error:
        raise ConfigError(f"RUN: {error}, 20261121T050000Z or last.") from None
    if run not in known:
        raise ConfigError(f"Archive {archive} has no run {run}; its last ones: {', '.join(runs[-5:])}.")
    return run


def _start(text: str) -> datetime:
    try:
        return parse_run_id(text)
    except ValueError:
        return moment(text)

"""One step of an archive in its own process, so that a test can kill it.

The processes are forked from one that has imported everything: a new Python takes longer to start than most steps.
"""

import multiprocessing
import os
import threading
from dataclasses import replace
from datetime import datetime
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.values.intervals import Interval, to_ms
from kafka_archiver.work.archive.step import ArchiveStep
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.dead_letters import replay_letters
from kafka_archiver.work.plan import plan
from kafka_archiver.work.rebuild import rebuild_run
from kafka_archiver.work.verify import verify
from tests.support.plain import EndingEngine, PlainEngine
from tests.support.worlds import Clocked

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload([__name__])
# Starting a process also asks how the others ended, and only who asks first is told.
_asking = threading.Lock()


def start_step(
    log: Path, name: str, archive: Archive, endpoints: Endpoints, moment: datetime, runs: tuple[str, ...]
) -> BaseProcess:
    """Start a step. :param name: see `_carry_out`. :param log: gets its output. :param moment: of all clocks."""
    document = archive.model_dump_json(by_alias=True)
    process = _forks.Process(target=_carry_out, args=(log, name, document, endpoints.to_json(), moment, runs))
    with _asking:
        process.start()
    return process


def end_of(process: BaseProcess, seconds: float) -> int | None:
    """The exit code of a step; None if it has not ended in time."""
    wait([process.sentinel], seconds)
    with _asking:
        return process.exitcode


def _carry_out(log: Path, name: str, archive: str, endpoints: str, moment: datetime, runs: tuple[str, ...]) -> None:
    with log.open("wb") as file:
        for standard in (1, 2):
            os.dup2(file.fileno(), standard)
    to = Endpoints.from_json(endpoints)
    context = Context.open(Archive.model_validate_json(archive), to)
    timed: Any = Clocked(context.store, lambda: to_ms(moment))
    context = replace(context, clock=lambda: moment, store=timed)
    if name == "plan":
        plan(context, Interval.model_validate_json(runs[0]), "scheduled")
    elif name == "rebuild":
        rebuild_run(context, runs[0])
    elif name == "replay":
        replay_letters(context, runs)
    elif name in ("archive", "archive, ending"):
        engine_class = PlainEngine if name == "archive" else EndingEngine
        engine = engine_class(to.kafka, context.store, Limits())
        policies = ReadPolicies.of(context.archive.policies.model_dump())
        step = ArchiveStep(context.cluster, context.store, context.ledger, engine, policies)
        for run in runs:
            step.run(run)
    elif name == "verify":
        verify(context, runs)
    elif name == "commit":
        commit(context, runs)
    else:
        close_hours(context, runs)

"""`airflow archive repair`: correct what an audit finds wrong, or record it as lost."""

from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from kafka_archiver.audit.inspection import audit, publish
from kafka_archiver.audit.report import Report, in_words
from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.advice import dag_id, plan_anew, run_now
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.wording import count
from kafka_archiver.orchestration.cli.find import find_archive
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.metadata.start import require_active, run_to_its_end
from kafka_archiver.orchestration.terminal.consent import agreed, can_ask
from kafka_archiver.orchestration.terminal.output import Answer, Cell, Table, answering
from kafka_archiver.work.repair import (
    Repairs,
    derive_documents,
    find_repairs,
    give_up_offsets,
    record_lost,
    restore_document,
    write_sidecars,
)

SHOWN = 200


@answering
def repair(args: Namespace) -> Answer:
    """Audit, repair what can be repaired, and audit again; or give up offsets by name."""
    archive = find_archive(args.archive)
    if bool(args.run) != bool(args.lost_offsets):
        raise ConfigError("--run and --lost-offsets belong together: the offsets, and the run that cannot read them")
    context, name = open_archive(archive), dag_id(archive.archive)
    if args.lost_offsets:
        return _give_up(context, args)
    repairs = find_repairs(context, _audit(context, args.deep), args.lost or ())
    rows = list(_rows(repairs))
    failures = [in_words(finding) for finding in repairs.unrepairable]
    if not repairs or args.dry_run:
        return _answer(archive.archive, rows, False, failures)
    if repairs.to_rewrite or repairs.to_replan:
        require_active(name)
    _require_consent(archive.archive, repairs, args)
    lost = f"{repairs.lost_rows:,} records will be lost for ever. " if repairs.lost else ""
    if not args.yes and not agreed(f"{lost}Repair archive {archive.archive}: {_counts(repairs)}?"):
        return _answer(archive.archive, rows, False, failures)
    for key in repairs.to_restore:
        restore_document(context.ledger, key, context.registry)
    if repairs.to_derive:
        derive_documents(context.ledger)
    for run, entries in repairs.sidecars.items():
        write_sidecars(context, run, [entry.key for entry in entries])
    for run, entries in repairs.lost.items():
        made = record_lost(context, run, [entry.key for entry in entries], args.lost or ())
        print(f"Run {made.run}: {count(len(entries), 'object')} of run {run} recorded as lost.")
    for run in repairs.to_replan:
        print(f"Planning run {run} anew, as {plan_anew(archive.archive, run).quoted} does.")
        _run(name, {"rebuild": {"run": run}})
    if repairs.to_rewrite:
        _run(name, {"repair": list(repairs.to_rewrite)})
    report = _audit(context, args.deep)
    # `status` shows the last report, which has what has just been repaired.
    publish(context.store, report)
    tried = {(row["action"], row["what"]) for row in rows}
    if any((row["action"], row["what"]) not in tried for row in _rows(find_repairs(context, report))):
        print("Some remaining findings could not be judged before this repair: run the repair once more.")
    return _answer(archive.archive, rows, True, [in_words(finding) for finding in report.damage])


def _give_up(context: Context, args: Namespace) -> Answer:
    """Record that a run does not read some offsets. Who names them agrees to their loss; at a terminal it is asked."""
    name, given = context.archive.archive, [f"{o.name} {o.range}" for o in args.lost_offsets]
    total = sum(offsets.range.size for offsets in args.lost_offsets)
    question = f"{total:,} offsets of run {args.run} will be lost for ever ({', '.join(given)}). Give them up?"
    done = not args.dry_run and (args.yes or agreed(question))
    for offsets in args.lost_offsets if done else ():
        give_up_offsets(context.ledger, args.run, offsets)
    rows = [
        {"action": "give up", "run": args.run, "what": what, "rows": None, "reason": "no client can read them"}
        for what in given
    ]
    if done:
        print(f"Recorded. {run_now(name).quoted} goes on with run {args.run}, without these offsets.")
    return _answer(name, rows, done, [])


def _require_consent(name: str, repairs: Repairs, args: Namespace) -> None:
    """See that somebody can agree to the loss of objects: by name, by `--yes` or at the terminal.

    :raises ConfigError: neither option is given, and there is no terminal.
    """
    unnamed = {entry.key for entries in repairs.lost.values() for entry in entries} - set(args.lost or ())
    if unnamed and not args.yes and not can_ask():
        command = f"airflow archive repair {name}{' --deep' * args.deep}"
        raise ConfigError(
            f"{count(len(unnamed), 'object')} would be recorded as lost for ever, and there is no terminal to ask on. "
            f"Nothing was changed. `{command} --dry-run` lists the objects; `{command} --yes` agrees to all of them, "
            f"`{command} --lost {min(unnamed)}` to the first"
        )


def _audit(context: Context, deep: bool) -> Report:
    return audit(context.archive, context.store, datetime.now(UTC), deep, tell=print, keyring=context.ledger.keyring)


def _run(name: str, conf: dict[str, Any]) -> None:
    if (state := run_to_its_end(name, conf, print)) != "success":
        raise ConfigError(f"The run of {name} has ended: {state}. The log of the task that failed has the cause.")


def _rows(repairs: Repairs) -> Iterator[dict[str, Any]]:
    for action, objects in (("write again", repairs.to_rewrite), ("restore", repairs.sidecars), ("lost", repairs.lost)):
        for run, entries in objects.items():
            for entry in entries:
                reason = repairs.why_lost.get(entry.key)
                yield {"action": action, "run": run, "what": entry.key, "rows": entry.rows, "reason": reason}
    for run, reason in repairs.to_replan.items():
        yield {"action": "plan anew", "run": run, "what": run, "rows": None, "reason": reason}
    for key in repairs.to_restore:
        yield {"action": "restore", "run": None, "what": key, "rows": None, "reason": None}
    for key in repairs.to_derive:
        yield {"action": "compute", "run": None, "what": key, "rows": None, "reason": None}


def _counts(repairs: Repairs) -> str:
    actions = [row["action"] for row in _rows(repairs)]
    return ", ".join(f"{actions.count(action):,} × {action}" for action in dict.fromkeys(actions))


def _answer(archive: str, rows: list[dict[str, Any]], done: bool, failures: list[str]) -> Answer:
    columns = ("action", "run", "what", "rows", "reason")
    outcome = "done" if done else "nothing was changed" if rows else "there is nothing to repair"
    shown: list[list[Cell]] = [[row[column] for column in columns] for row in rows[:SHOWN]]
    below = [f"and {len(rows) - SHOWN:,} more; `--output json` has all"] if len(rows) > SHOWN else []
    document = {"archive": archive, "repaired": done, "actions": rows, "left": failures}
    return Answer(document, [Table(columns, shown, f"Repair of {archive}: {outcome}", below=below)], failures)

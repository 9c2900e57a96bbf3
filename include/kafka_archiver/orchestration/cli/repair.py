"""`airflow archive repair`: correct what an audit finds wrong, or record it as lost."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.messages.advice import dag_id, plan_anew, run_now
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.wording import count
from kafka_archiver.orchestration.cli.completion import ANSWER, ARCHIVE, YES, run_names
from kafka_archiver.orchestration.terminal.dialog import ask_consent, has_terminal
from kafka_archiver.orchestration.terminal.options import OUTPUT, offsets, option
from kafka_archiver.orchestration.terminal.output import Answer, Cell, Table, in_audit_log, print_answer

if TYPE_CHECKING:
    from kafka_archiver.audit.report import Report
    from kafka_archiver.context.archive_context import Context
    from kafka_archiver.work.repair import Repairs

REPAIR = ActionCommand(
    name="repair",
    help="Correct what the audit finds wrong, or record it as lost",
    description=f"""\
Audit an archive and do what the findings advise, then audit again. A repair
- writes missing and damaged objects again from Kafka (by a run of the DAG archive_NAME)
- records objects as lost, by name, if Kafka no longer has their records
- computes proofs and progress again
- restores plans and manifests from other documents with the same content
- plans runs anew that cannot be finished as planned.

An object that is recorded as lost makes its hour incomplete for ever: its records count as lost, and every audit
reports them. The rest of its run stays. If the bucket has a version or copy of the object, restore that first.

With --run and --lost-offsets nothing is audited: an unfinished run goes on without these offsets, which no client can
read. The message of the failed run names them.

json and yaml: {{archive, repaired (whether anything was done), actions: a list of {{action (write again,
lost, give up, plan anew, restore or compute), run, what (a key, a run or offsets), rows, reason}}, left (findings that
cannot be repaired)}}.
{ANSWER} A finding that is left gives 1.""",
    func=lazy_load_command(f"{__name__}.repair"),
    args=(
        ARCHIVE,
        option("-n", "--dry-run", action="store_true", help="Only list what would be done"),
        option("--deep", action="store_true", help="Also read every object, as `airflow archive audit --deep` does"),
        option(
            "--lost",
            action="append",
            metavar="KEY",
            help="Record this object as lost, whatever Kafka has: for an object that Kafka gives back with other bytes",
        ),
        option(
            "--run", metavar="RUN", completer=run_names, help="The run that cannot read the offsets of --lost-offsets"
        ),
        option(
            "--lost-offsets",
            action="append",
            type=offsets,
            metavar="TOPIC:PARTITION:START-END",
            help="Give up these offsets of the run (END is exclusive): they are lost for ever",
        ),
        YES,
        OUTPUT,
    ),
)

SHOWN = 200


@print_answer
@in_audit_log
def repair(args: Namespace) -> Answer:
    """Audit, repair what can be repaired, and audit again; or give up offsets by name."""
    from kafka_archiver.audit.inspection import publish
    from kafka_archiver.audit.report import in_words
    from kafka_archiver.orchestration.cli.names import find_archive
    from kafka_archiver.orchestration.connections import open_archive
    from kafka_archiver.orchestration.metadata.start import require_active, run_to_success
    from kafka_archiver.work.repair import derive_documents, find_repairs, record_lost, restore_document, write_sidecars

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
    if not args.yes and not ask_consent(f"{lost}Repair archive {archive.archive}: {_counts(repairs)}?"):
        return _answer(archive.archive, rows, False, failures)
    for key in repairs.to_restore:
        restore_document(context.ledger, key, context.registry)
    if repairs.to_derive:
        derive_documents(context.ledger)
    for run, entries in repairs.sidecars.items():
        write_sidecars(context, run, [entry.key for entry in entries])
    for run, entries in repairs.lost.items():
        revision = record_lost(context, run, [entry.key for entry in entries], args.lost or ())
        print(f"Run {revision.run}: {count(len(entries), 'object')} of run {run} recorded as lost.")
    for run in repairs.to_replan:
        print(f"Planning run {run} anew, as {plan_anew(archive.archive, run).quoted} does.")
        run_to_success(name, {"rebuild": {"run": run}}, print)
    if repairs.to_rewrite:
        run_to_success(name, {"repair": list(repairs.to_rewrite)}, print)
    report = _audit(context, args.deep)
    # `status` shows the last report, which has what has just been repaired.
    publish(context.store, report)
    tried = {(row["action"], row["what"]) for row in rows}
    if any((row["action"], row["what"]) not in tried for row in _rows(find_repairs(context, report))):
        print("Some remaining findings could not be judged before this repair: run the repair once more.")
    return _answer(archive.archive, rows, True, [in_words(finding) for finding in report.damage])


def _give_up(context: Context, args: Namespace) -> Answer:
    """Record that a run does not read some offsets. Who names them agrees to their loss; at a terminal it is asked."""
    from kafka_archiver.work.repair import give_up_offsets

    name, described = context.archive.archive, [f"{o.name} {o.range}" for o in args.lost_offsets]
    total = sum(lost.range.size for lost in args.lost_offsets)
    question = f"{total:,} offsets of run {args.run} will be lost for ever ({', '.join(described)}). Give them up?"
    done = not args.dry_run and (args.yes or ask_consent(question))
    for lost in args.lost_offsets if done else ():
        give_up_offsets(context.ledger, args.run, lost)
    rows = [
        {"action": "give up", "run": args.run, "what": what, "rows": None, "reason": "no client can read them"}
        for what in described
    ]
    if done:
        print(f"Recorded. {run_now(name).quoted} goes on with run {args.run}, without these offsets.")
    return _answer(name, rows, done, [])


def _require_consent(name: str, repairs: Repairs, args: Namespace) -> None:
    """See that somebody can agree to the loss of objects: by name, by `--yes` or at the terminal.

    :raises ConfigError: neither option is given, and there is no terminal.
    """
    unnamed = {entry.key for entries in repairs.lost.values() for entry in entries} - set(args.lost or ())
    if unnamed and not args.yes and not has_terminal():
        command = f"airflow archive repair {name}{' --deep' * args.deep}"
        raise ConfigError(
            f"{count(len(unnamed), 'object')} would be recorded as lost for ever, and there is no terminal to ask on. "
            f"Nothing was changed. `{command} --dry-run` lists the objects; `{command} --yes` agrees to all of them, "
            f"`{command} --lost {min(unnamed)}` to the first"
        )


def _audit(context: Context, deep: bool) -> Report:
    from kafka_archiver.audit.inspection import audit

    return audit(context.archive, context.store, datetime.now(UTC), deep, tell=print, keyring=context.ledger.keyring)


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

"""`airflow archive restore`: write archived records to Kafka again, each once, and prove it."""

from __future__ import annotations

import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ActionCommand, lazy_load_command
from airflow.utils.cli import suppress_logs_and_warning
from airflow.utils.providers_configuration_loader import providers_configuration_loaded

from kafka_archiver.messages.advice import restore_dag_id
from kafka_archiver.messages.errors import ArchiverError, ConfigError
from kafka_archiver.messages.wording import count
from kafka_archiver.orchestration.cli.completion import ARCHIVE, YES
from kafka_archiver.orchestration.terminal.dialog import ask_consent, has_terminal
from kafka_archiver.orchestration.terminal.options import moment, option, positive
from kafka_archiver.orchestration.terminal.output import in_audit_log, report_errors
from kafka_archiver.orchestration.terminal.stdout import say
from kafka_archiver.values.documents import isoformat

if TYPE_CHECKING:
    from kafka_archiver.config import Archive
    from kafka_archiver.ledger.ledger import Ledger
    from kafka_archiver.model.restore import RestoreLimits
    from kafka_archiver.model.restore_request import RestoreRequest
    from kafka_archiver.work.restore.prepare import Forecast


def _several(flag: str, text: str, metavar: str, dest: str) -> Any:
    return option(flag, action="append", metavar=metavar, dest=dest, help=f"{text}; may be given several times")


RESTORE = ActionCommand(
    name="restore",
    help="Write archived records to Kafka again, each exactly once, and prove it",
    description="""\
Restore an archive, or a part of it, to Kafka topics. Says first what it would write and whether the target is ready;
--dry-run only says it. The counts are those of the manifests: exact for topics, partitions, offsets and whole hours,
the most for keys, headers and times, which only the records themselves tell. Asks on a terminal; in a script, --yes is
needed. Starts a run of the DAG restore_NAME, waits until it ends and reports each task and the progress.

A restore has a name. If it fails or is killed, the same command with the same name (--restore) goes on where it was: no
record is written twice. `verified` in the report means that every record was read back and is the archive's.

What cannot be restored exactly is refused, with the count: see --allow and docs/howto/restore.md.

The exit code is 0 when the run has succeeded, else 1 with the reason. Ctrl-C ends the waiting, not the run.""",
    func=lazy_load_command(f"{__name__}.restore"),
    args=(
        ARCHIVE,
        option("--restore", metavar="RESTORE", help="Name of the restore (default: the present time)"),
        option("--to", metavar="CONNECTION", help="Kafka connection of the target (default: the archive's own)"),
        _several("--topic", "A topic of the archive, or a pattern for whole names (default: all)", "TOPIC", "topics"),
        _several("--rename", r"New names, as in orders=orders_restored or '(.*)=\1_restored'", "FROM=TO", "rename"),
        option("--create", action="store_true", help="Create missing topics, as the archive's plans have seen them"),
        option("--append", action="store_true", help="Also write to topics that have records"),
        option("--partitioner", choices=("same", "murmur2", "crc32"), default="same", metavar="same|murmur2|crc32",
               help="The source's partitions (default), or by the key as Java's producer or librdkafka"),
        option("--partition", action="append", type=int, metavar="N", dest="partitions",
               help="A partition of the source (default: all); may be given several times"),
        option("--from", type=moment, metavar="TIME", dest="first", help="The first hour, as in 2026-11-21T05:00:00Z"),
        option("--until", type=moment, metavar="TIME", help="The end of the last hour, not included"),
        option("--start", type=int, metavar="OFFSET", help="The first offset of each partition"),
        option("--end", type=int, metavar="OFFSET", help="The end of the offsets, not included"),
        option("--as-of", type=moment, metavar="TIME", help="Only records with a timestamp before this time"),
        _several("--key", "Only records with this key; base64:… for bytes", "KEY", "keys"),
        option("--keys-file", metavar="FILE", help="Only records with one of the keys in this file, one in a line"),
        _several("--header", "Only records with this header", "NAME[=VALUE]", "headers"),
        option("--generation", type=int, metavar="G", help="Of topics that were made anew"),
        option("--dead-letters", choices=("with", "without", "only"), default="with", metavar="with|without|only",
               help="With dead letters (default), without, or only these"),
        _several("--allow", "What need not be exact: values_only, rows, lost, timestamps, headers", "WHAT", "allow"),
        option("--bytes-per-second", type=positive, metavar="N", help="At most, of the whole restore"),
        option("--records-per-second", type=positive, metavar="N", help="At most, of the whole restore"),
        option("--registry", metavar="CONNECTION", help="Register the archive's schemas at this registry"),
        option("--schema-ids", choices=("same", "new"), default="same", metavar="same|new",
               help="The ids that the records have (default), or the registry's, which the records get"),
        _several("--groups", "Put these consumer groups behind what they had read; a pattern", "PATTERN", "groups"),
        option("--groups-from", metavar="CONNECTION", help="The source's brokers tell where groups stand"),
        option("--replace-groups", action="store_true", help="Also groups that have other offsets in the target"),
        option("-n", "--dry-run", action="store_true", help="Only say what would be done"),
        YES,
        option("-v", "--verbose", action="store_true", help="Make logging output more verbose"),
    ),
)  # fmt: skip


@report_errors
@in_audit_log
@suppress_logs_and_warning
@providers_configuration_loaded
def restore(args: Namespace) -> None:
    """Say what would be restored, ask, start the run and follow it."""
    from kafka_archiver.orchestration.cli.names import find_archive
    from kafka_archiver.orchestration.connections import open_ledger
    from kafka_archiver.orchestration.dag_run.restore_form import restore_request
    from kafka_archiver.orchestration.metadata.start import require_active, run_to_its_end
    from kafka_archiver.work.restore.plan import plan_of
    from kafka_archiver.work.restore.prepare import known_topics

    archive = find_archive(args.archive)
    ledger = open_ledger(archive)
    conf = conf_of_arguments(args)
    request = restore_request(conf, known_topics(ledger), conf["restore"])
    if plan := ledger.restore_plan(request.restore):
        say(f"Restore {request.restore} is planned already: going on with it{_limits(plan_of(plan, request).limits)}.")
    else:
        _look_ahead(archive, ledger, request, args)
    if args.dry_run:
        _dry_groups(archive, ledger, request, args)
        return
    name = restore_dag_id(archive.archive)
    require_active(name)
    if not args.yes:
        if not has_terminal():
            raise ConfigError("There is no terminal to ask on, and nothing was written: --yes agrees to the restore")
        if not ask_consent(f"Restore this to {', '.join(map(request.target_of, request.selection.topics))}?"):
            say("Nothing was written.")
            raise SystemExit(1)
    with _progress(archive, ledger, request, args.to):
        state = run_to_its_end(name, conf, say)
    if report := ledger.restore_report(request.restore).document:
        records = sum(part.records for part in report.partitions)
        say(f"{'Verified' if report.verified else 'NOT verified'}: {count(records, 'record')} in the target.")
    if state != "success":
        say(f"Once the cause is mended, go on with: --restore {request.restore} and the same options.")
        raise SystemExit(1)


def _limits(limits: RestoreLimits) -> str:
    """Return what a plan says about the speed: a later command does not change it."""
    pairs = ((limits.bytes_per_second, "bytes"), (limits.records_per_second, "records"))
    texts = [f"{number:,} {noun} a second" for number, noun in pairs if number]
    return f", at most {' and '.join(texts)} as planned" if texts else ", without a limit, as planned"


def conf_of_arguments(args: Namespace) -> dict[str, Any]:
    """Return the conf of the DAG run.

    :raises ConfigError: the file of keys cannot be read.
    """
    from kafka_archiver.orchestration.dag_run.restore_form import conf_of, storable_key

    times = {"from": args.first, "until": args.until, "as_of": args.as_of}
    conf = {**vars(args), **{key: None if at is None else isoformat(at) for key, at in times.items()}}
    conf["keys"] = [*(args.keys or ()), *(map(storable_key, _keys_in(args.keys_file)) if args.keys_file else ())]
    conf["restore"] = args.restore or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    chosen = conf_of(conf)
    # 0 is an offset, a partition and a generation.
    return chosen | {key: conf[key] for key in ("start", "end", "generation") if conf[key] is not None}


def _keys_in(file: str) -> list[str]:
    try:
        # Not by splitlines(): a key may have its other ends of lines, like U+2028.
        lines = Path(file).read_bytes().decode("utf-8-sig").split("\n")
        keys = [key for line in lines if (key := line.removesuffix("\r"))]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--keys-file {file}: expected keys in UTF-8, or base64:…, one in a line ({error})") from None
    if not keys:
        raise ConfigError(
            f"--keys-file {file}: expected keys, one in a line, found none. For the empty key write base64: alone; to "
            "restore all keys, leave the option out"
        )
    return keys


def judged(outlook: Forecast, create: bool) -> Iterator[str]:
    """Yield a line for each finding about the target.

    :param create: the restore creates missing topics.
    """
    problems = outlook.problems(create)
    for finding in outlook.findings:
        steps = "; ".join(action.command or action.words for action in finding.actions)
        if finding.severity == "problem" and finding not in problems:
            yield f"{finding.text}: --create makes it"
        else:
            yield f"{'Refused' if finding in problems else 'Mind'}: {finding.text}" + f". To do: {steps}" * bool(steps)


def _look_ahead(archive: Archive, ledger: Ledger, request: RestoreRequest, args: Namespace) -> None:
    """Say what the restore would take, and refuse it if the target is not ready."""
    from kafka_archiver.kafka.cluster import Cluster
    from kafka_archiver.orchestration.connections import target_endpoints
    from kafka_archiver.work.restore.prepare import forecast

    outlook = forecast(ledger, Cluster(target_endpoints(archive, args.to).kafka), request)
    for line in outlook.lines(request):
        say(line)
    for line in judged(outlook, args.create):
        say(line)
    problems = outlook.problems(args.create)
    if outlook.refused:
        say(f"Refused: {outlook.refused}")
    if problems or outlook.refused:
        raise SystemExit(1)


def _dry_groups(archive: Archive, ledger: Ledger, request: RestoreRequest, args: Namespace) -> None:
    """Say where the groups would go, if the restore is verified."""
    from kafka_archiver.orchestration.connections import target_endpoints
    from kafka_archiver.work.restore.groups import move_groups

    plan = ledger.restore_plan(request.restore)
    if not args.groups or plan is None:
        return
    source = args.groups_from and target_endpoints(archive, args.groups_from).kafka
    target = target_endpoints(archive, args.to).kafka
    report = move_groups(ledger, plan, target, args.groups, source, args.replace_groups, dry_run=True)
    for group in report.groups:
        say(f"group {group.group}: {group.outcome} {group.reason}".rstrip())
        for place in group.offsets:
            say(f"  {place.name} at {place.offset}" + f" ({place.note})" * bool(place.note))


@contextmanager
def _progress(archive: Archive, ledger: Ledger, request: RestoreRequest, to: str | None) -> Iterator[None]:
    """Show the progress in one line of the terminal, which each time replaces itself."""
    from kafka_archiver.kafka.cluster import Cluster
    from kafka_archiver.orchestration.connections import target_endpoints
    from kafka_archiver.work.restore.step import progress_line, written_records

    ended = threading.Event()
    cluster = Cluster(target_endpoints(archive, to).kafka)

    def look() -> None:
        began, before, plan = time.monotonic(), None, None
        while not ended.wait(3):
            try:
                plan = plan or ledger.restore_plan(request.restore)
                if plan is None:
                    continue
                stamps = [place.stamp for place in cluster.positions(plan.group, plan.targets()).values() if place]
            except ArchiverError:
                continue
            if before is None:
                began, before = time.monotonic(), written_records(plan, stamps)
            line = progress_line(plan, stamps, time.monotonic() - began, before)
            share = written_records(plan, stamps) / max(1, plan.records)
            done = min(20, int(20 * share))
            print(f"\r[{'#' * done}{'.' * (20 - done)}] {line}\033[K", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=look, name="progress", daemon=True)
    if sys.stderr.isatty():
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if sys.stderr.isatty():
            thread.join(5)
            print(file=sys.stderr, flush=True)

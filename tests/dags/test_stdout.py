"""Standard output has a command's data alone, whoever else writes there, by whatever way, while the command works."""

import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

import pytest
import structlog
from airflow.cli import cli_config
from airflow.cli.cli_parser import get_parser
from airflow.sdk import Connection
from botocore.session import Session as Botocore

from kafka_archiver.config.archives import read_archives
from kafka_archiver.model.target_facts import TargetFacts
from kafka_archiver.orchestration import connections
from kafka_archiver.orchestration.cli.commands import commands
from kafka_archiver.orchestration.terminal.at_start import gives_data
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range
from tests.dags.conftest import AddConnection
from tests.support.brokers import Brokers
from tests.support.lake import Lake, hour
from tests.support.runs import P0

pytestmark = [pytest.mark.dags, pytest.mark.usefixtures("local_connections", "quiet", "started")]

# A call of each command that gives data. {object}: a stored object's URL; {run}: a run; {folder}: of files;
# {store}: the archive's.
CALLS = {
    "list": "-o json",
    "validate": "-o json",
    "import": "{folder}/sink.json --accept",
    "status": "orders",
    "plan": "orders -o yaml",
    "runs": "orders -o json",
    "show": "orders {run} -o json",
    "print": "{object}",
    "get": "orders {topic}+0@1",
    "decrypt": "{object}",
    "audit": "orders -o json",
    "doctor": "orders -o json",
    "acknowledge": "orders -o json",
    "clean": "orders --dry-run -o json",
    "fill": "orders --dry-run -o json",
    "rebuild": "orders --run {run} --dry-run",
    "repair": "orders --dry-run -o json",
    "replay-dead-letters": "orders --all --dry-run -o json",
    "rotate-keys": "--dry-run -o json",
    "requirements": "",
    "adopt": "{store} --from confluent --dry-run -o json",
    "restore": "orders --restore again --dry-run",
}
SINK = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "orders",
    "s3.bucket.name": "lake",
    "s3.region": "eu-west-1",
    "flush.size": "100",
    "format.class": "io.confluent.connect.s3.format.bytearray.ByteArrayFormat",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}
NOISE = b"NOISE"
# Of the call itself, as an audit has it.
TIME = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+Z")


@pytest.fixture
def words(archives: Path, tmp_path: Path, connection: AddConnection, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An encrypted archive with two runs, and what the calls name."""
    connection("master_key", "generic", password="MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=")
    (archives / "orders.yaml").write_text(
        f"archive: orders\nsource: {{topics: [{P0.topic}], settle: 0}}\n"
        f"store: {{url: 'memory://{tmp_path.name}/lake', encryption: {{client: {{connection: master_key}}}}}}\n"
    )
    archive = read_archives(archives).valid["orders"]
    keyring = connections.open_ledger(archive).keyring
    lake = Lake(MemoryStore(tmp_path.name, "lake"), {P0: Range(0, 4)}, name="orders", keyring=keyring)
    lake.configure(archive)
    lake.run(2)
    lake.logs[P0] = Range(0, 6)
    for opener in ("context.archive_context.connect", "orchestration.cli.doctor_checks.Cluster"):
        monkeypatch.setattr(f"kafka_archiver.{opener}", lake.brokers)
    (tmp_path / "sink.json").write_text(json.dumps(SINK))
    monkeypatch.setattr("kafka_archiver.kafka.cluster.Cluster", lake.brokers)
    monkeypatch.setattr("kafka_archiver.work.restore.prepare.gather_facts", facts_of_no_topics)
    stored = f"{lake.store.url}/{lake.stored()[0]}"
    return {"object": stored, "store": lake.store.url, "run": hour(2).id, "topic": P0.topic, "folder": str(tmp_path)}


def facts_of_no_topics(cluster: Brokers, _: Any, group: str, transactional_id: str) -> TargetFacts:
    """Say that a restore's topics are missing, which its dry run tells."""
    return TargetFacts(
        cluster_id=cluster.cluster_id(),
        brokers=cluster.size(),
        tools=cluster.tools,
        topics={},
        group=group,
        transactional_id=transactional_id,
        group_operations=frozenset(),
        refused_transaction="",
    )


class Noise:
    """All that writes lines to standard output without having been asked. `stream` is what loggers took at start."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.handler = logging.StreamHandler(stream)
        self.logger = structlog.PrintLogger(stream)

    def write(self, where: str) -> None:
        line = f"{NOISE.decode()} {where}"
        print(line, "print")
        # Stays in its buffer until somebody flushes it.
        self.stream.write(f"{line} stream\n")
        self.logger.info(f"{line} structlog")
        logging.getLogger("botocore.noise").warning("%s logging", line)
        thread = threading.Thread(target=os.write, args=(1, f"{line} C or a child process\n".encode()))
        thread.start()
        thread.join()

    def before(self, function: Callable[..., Any], where: str) -> Callable[..., Any]:
        def noisy(*args: Any, **kwargs: Any) -> Any:
            self.write(where)
            return function(*args, **kwargs)

        return noisy

    def credentials(self) -> None:
        """Look credentials up, which says where they come from: as the amazon provider does at any request."""
        assert Botocore().get_credentials()


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """`sys.stdout` as a process has it: pytest's own stand-in has another descriptor."""
    with open(1, "w", closefd=False) as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        yield stream


@pytest.fixture(params=["environment", "file"])
def noisy(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Noise, pytest.MonkeyPatch], None]:
    """Makes noise when a command is imported, at any import in it, and when it gets connections and credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    if request.param == "environment":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    else:
        (tmp_path / "credentials").write_text("[default]\naws_access_key_id = AKID\naws_secret_access_key = secret\n")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))

    def install(noise: Noise, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(cli_config, "import_string", noise.before(cli_config.import_string, "import of the command"))
        patch.setattr(Connection, "get", noise.before(Connection.get, "connection"))

        def with_credentials(function: Callable[..., Any]) -> Callable[..., Any]:
            def looked_up(*args: Any, **kwargs: Any) -> Any:
                noise.credentials()
                return function(*args, **kwargs)

            return looked_up

        for name in ("open_archive", "open_ledger", "open_store"):
            patch.setattr(connections, name, with_credentials(getattr(connections, name)))
        logger = logging.getLogger("botocore")
        patch.setattr(logger, "handlers", [noise.handler])
        patch.setattr(logger, "level", logging.INFO)
        for child in (logging.getLogger("botocore.credentials"), logging.getLogger("botocore.noise")):
            patch.setattr(child, "disabled", False)

    return install


def test_each_command_gives_its_data_alone(
    words: dict[str, str],
    noisy: Callable[[Noise, pytest.MonkeyPatch], None],
    capfdbinary: pytest.CaptureFixture[bytes],
    archives: Path,
) -> None:
    [group] = commands()
    assert set(CALLS) == {command.name for command in group.subcommands}, "each command has a call"

    def called(name: str) -> tuple[bytes, bytes]:
        args = get_parser().parse_args(["archive", name, *CALLS[name].format(**words).split()])
        capfdbinary.readouterr()
        with suppress(SystemExit):
            args.func(args)
        sys.stdout.flush()
        return capfdbinary.readouterr()

    for name in CALLS:
        with standard_output():
            data, _ = called(name)
        with standard_output() as stream, pytest.MonkeyPatch.context() as patch:
            noisy(Noise(stream), patch)
            out, err = called(name)
        assert data, f"{name} gives no data: {err!r}"
        assert NOISE not in out, f"{name}: {out!r}"
        assert TIME.sub(b"", out) == TIME.sub(b"", data), name
        for way in (b"print", b"stream", b"structlog", b"logging", b"C or a child process"):
            assert NOISE + b" import of the command " + way in err, f"{name}: {way!r}"


@pytest.mark.parametrize("program", ["airflow", "/opt/airflow/bin/airflow"])
def test_the_words_of_a_call_tell_at_the_start_that_it_gives_data(program: str) -> None:
    """The log before and after a command is in tests/dags/test_cli_process.py, in a process of its own."""
    for name, words in CALLS.items():
        call = [program, "archive", name, *words.split()]
        assert gives_data(call), name
        assert not gives_data([*call, "-h"]), "the help is no data: nothing is moved"
        assert not gives_data(["my-program", *call[1:]]), "a program that has Airflow as a library"
    for arguments in ([], ["archive"], ["archive", "--help"], ["archive", "--he"], ["dags", "list"], ["version"]):
        assert not gives_data([program, *arguments])

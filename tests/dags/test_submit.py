"""spark-submit as the task calls it: a real process, by a script that stands in for Spark's."""

import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk._shared.secrets_masker import SecretsMasker, _secrets_masker
from airflow.sdk.exceptions import AirflowSkipException

from kafka_archiver.config import Archive
from kafka_archiver.driver.end_with_parent import TASK_PID
from kafka_archiver.jobs.archive import ArchiveJob
from kafka_archiver.jobs.endpoints import ENDPOINTS, VERDICT, Endpoints
from kafka_archiver.messages.advice import once
from kafka_archiver.messages.errors import ConfigError, Failure, PermanentError, PolicyError, TransientError
from kafka_archiver.orchestration.connections import endpoints
from kafka_archiver.orchestration.dag_run.xcoms import CPU
from kafka_archiver.orchestration.submit.hook import SubmitHook
from kafka_archiver.orchestration.submit.operator import JOB
from kafka_archiver.spark.failures import MARK
from kafka_archiver.work.plan import PlannedWork
from scripts.stack.paths import ROOT
from tests.dags.conftest import RUN, SECRET, AddConnection, MakeArchive, context_of, logged, operator_of

pytestmark = [pytest.mark.dags, pytest.mark.usefixtures("may_execute")]
GOLDEN = Path(__file__).parent / "golden"
NO_LOCK = -1
CONF = (
    "{spark.executor.memory: 2g, spark.log.level: INFO, spark.speculation: false, spark.app.x: '{{APP_ID}}', "
    f"spark.hadoop.fs.s3a.secret.key: {SECRET}}}"
)


@pytest.fixture
def spark_submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes spark-submit a script that notes its arguments and environment, then does what `behave.sh` says."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "spark-submit"
    script.write_text(
        "#!/bin/sh\n"
        f'cd {folder} && printf "%s\\n" "$@" > arguments && env > environment\n'
        'while [ $# -gt 0 ]; do case "$1" in --py-files) cp "$2" package.zip ;;'
        ' --properties-file) cp -p "$2" properties ;; esac; shift; done\n'
        ". ./behave.sh\n"
    )
    script.chmod(0o755)
    (folder / "behave.sh").write_text("exit 0\n")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_the_command_and_the_properties_are_the_golden_ones(
    archive: MakeArchive, local_connections: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    orders = archive(f"spark: {{conf: {CONF}}}\n")
    hook = operator_of(orders).hook(orders, RUN, tmp_path, NO_LOCK)
    assert rendered(hook, tmp_path) == (GOLDEN / "client.txt").read_text()
    assert SECRET not in logged(capfd)


def test_secrets_among_sparks_settings_are_kept_out_of_logs(
    archive: MakeArchive, local_connections: None, tmp_path: Path
) -> None:
    masker: SecretsMasker = _secrets_masker()
    orders = archive("spark: {conf: {spark.hadoop.fs.s3a.secret.key: swordfish9}}\n")
    operator_of(orders).hook(orders, RUN, tmp_path, NO_LOCK)
    assert masker.redact("it was swordfish9") == "it was ***"


def rendered(hook: SubmitHook, folder: Path) -> str:
    """The command and its properties file."""
    command = "\n".join(hook._build_spark_submit_command(str(JOB)))
    file = folder / "spark.properties"
    assert file.stat().st_mode & 0o777 == 0o600
    shown = command.replace(str(ROOT), "$ROOT").replace(str(folder), "$FOLDER")
    assert SECRET not in shown
    return f"{shown}\n\nspark.properties:\n{file.read_text().replace(str(folder), '$FOLDER')}"


def test_the_job_gets_the_endpoints_by_its_environment_and_the_package_by_py_files(
    archive: MakeArchive, local_connections: None, spark_submit: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = operator_of(archive())
    task.execute(context_of())
    environment = dict(line.split("=", 1) for line in (spark_submit / "environment").read_text().splitlines())
    assert json.loads(environment[ENDPOINTS])["kafka"]["sasl.password"] == SECRET
    # With it the driver notices when the task is gone.
    assert environment[TASK_PID] == str(os.getpid())
    assert (spark_submit / "package.zip").stat().st_size > 10_000
    arguments = (spark_submit / "arguments").read_text()
    job = ArchiveJob.from_arguments([arguments.splitlines()[-1]])
    assert (job.runs, job.archive, job.store) == ((RUN,), "orders", "s3://bucket/lake")
    assert SECRET not in arguments + logged(capfd)
    # Nothing of it is left on this machine, nor of what Java and Python have written.
    folder = Path(arguments.split("--py-files\n")[1].split("\n")[0]).parent
    assert environment["TMPDIR"] == str(folder)
    assert f'"-Djava.io.tmpdir={folder}"' in environment["SPARK_SUBMIT_OPTS"]
    assert not folder.exists()


def test_spark_submit_keeps_its_folder_when_the_task_dies_first(
    archive: MakeArchive, local_connections: None, spark_submit: Path
) -> None:
    # Its own lock would not be granted while the task has it, and each lock goes with the process: so it is the task's.
    (spark_submit / "behave.sh").write_text("readlink /proc/$$/fd/* > open; exit 0")
    operator_of(archive()).execute(context_of())
    arguments = (spark_submit / "arguments").read_text().splitlines()
    folder = Path(arguments[arguments.index("--py-files") + 1]).parent
    assert str(folder) in (spark_submit / "open").read_text().splitlines()


@pytest.mark.parametrize(
    ("reader", "driver"), [("auto", '-XX:TieredStopAtLevel=1 "{place}" -Dmine=1'), ("spark", '"{place}" -Dmine=1')]
)
def test_the_jvm_compiles_quickly_where_no_record_passes_it_and_users_options_come_last(
    archive: MakeArchive,
    local_connections: None,
    spark_submit: Path,
    monkeypatch: pytest.MonkeyPatch,
    reader: str,
    driver: str,
) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
    orders = archive()
    source = orders.source.model_copy(update={"reader": reader})
    operator_of(orders.model_copy(update={"source": source})).execute(context_of())
    environment = dict(line.split("=", 1) for line in (spark_submit / "environment").read_text().splitlines())
    assert environment["SPARK_SUBMIT_OPTS"] == driver.format(place=f"-Djava.io.tmpdir={environment['TMPDIR']}")
    assert environment["SPARK_LAUNCHER_OPTS"] == "-XX:TieredStopAtLevel=1"


def test_each_run_has_a_job_of_its_own_with_a_folder_of_its_own(
    archive: MakeArchive, local_connections: None, spark_submit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For two of them at once see tests/contract/test_backlog.py."""
    runs = ("20261121T030000Z", "20261121T040000Z", RUN)
    (spark_submit / "behave.sh").write_text("cat arguments >> all; exit 0")

    def one_after_the_other(_: Any, work: PlannedWork, submit: Callable[[str], None]) -> None:
        for run in work.archive:
            submit(run)

    monkeypatch.setattr("kafka_archiver.work.backlog.archive_runs", one_after_the_other)
    operator_of(archive()).execute(context_of(runs))
    words = (spark_submit / "all").read_text().splitlines()
    assert [ArchiveJob.from_arguments([word]).runs for word in words if word.startswith("{")] == [(r,) for r in runs]
    folders = {word for before, word in pairwise(words) if before == "--py-files"}
    assert len(folders) == 3
    assert not any(Path(folder).parent.exists() for folder in folders)


def test_the_cpu_of_the_job_is_noted(archive: MakeArchive, local_connections: None, spark_submit: Path) -> None:
    (spark_submit / "behave.sh").write_text('python3 -c "import time\nwhile time.process_time() < 0.5: pass"\n')
    context = context_of()
    operator_of(archive()).execute(context)
    assert 0.5 <= context["ti"].pushed[CPU] < 30


def test_nothing_to_read_skips_spark(archive: MakeArchive, local_connections: None, spark_submit: Path) -> None:
    with pytest.raises(AirflowSkipException, match="no offsets to read"):
        operator_of(archive()).execute(context_of(archive=()))
    assert not (spark_submit / "arguments").exists()


@pytest.mark.parametrize(
    ("behaviour", "kind", "message"),
    [
        (f"echo '{MARK}PolicyError: 5 offsets are gone'; exit 64", PermanentError, "^PolicyError: 5 offsets are gone$"),
        (f"echo '{MARK}TransientError: no answer'; exit 75", TransientError, "^TransientError: no answer$"),
        ("echo java.lang.InternalError: disk >&2; exit 1", TransientError, "code 1: java.lang.InternalError: disk"),
        ("echo java.lang.OutOfMemoryError: heap >&2; exit 52", PermanentError, "OutOfMemoryError: heap.*native"),
        ("kill -9 $$", TransientError, "killed by signal 9"),
    ],
)
def test_a_failed_job_fails_the_task_with_its_own_cause(
    archive: MakeArchive,
    local_connections: None,
    spark_submit: Path,
    behaviour: str,
    kind: type[Exception],
    message: str,
) -> None:
    (spark_submit / "behave.sh").write_text(behaviour)
    with pytest.raises(kind, match=message) as caught:
        operator_of(archive()).execute(context_of())
    assert type(caught.value) is kind
    # The provider's own error, with the whole command and output, would be shown before ours.
    assert caught.value.__suppress_context__


def test_what_the_job_leaves_as_a_value_is_raised_as_it_was(
    archive: MakeArchive, local_connections: None, spark_submit: Path
) -> None:
    choice = once("orders", {"lost_offsets": "record_loss"})
    failure = Failure.of(PolicyError("5 offsets are gone.", advice="\nDecide: " + "é" * 3000, actions=(choice,)))
    (spark_submit / "left").write_text(failure.to_json())
    (spark_submit / "behave.sh").write_text(f'cat left > "${VERDICT}"; echo "{MARK}PolicyError: 5 offsets"; exit 64')
    with pytest.raises(PolicyError) as caught:
        operator_of(archive()).execute(context_of())
    assert (caught.value.message, caught.value.advice, caught.value.actions) == failure[1:4]


def test_half_a_value_does_not_count(archive: MakeArchive, local_connections: None, spark_submit: Path) -> None:
    (spark_submit / "behave.sh").write_text(f'echo \'{{"kind"\' > "${VERDICT}"; echo "{MARK}it is over"; exit 64')
    with pytest.raises(PermanentError, match=r"^it is over$"):
        operator_of(archive()).execute(context_of())


def test_a_machine_without_spark_says_so(
    archive: MakeArchive, local_connections: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="spark-submit is not on the PATH of this Airflow worker"):
        operator_of(archive()).execute(context_of())


def test_a_missing_spark_connection_is_no_yarn(
    archive: MakeArchive, connection: AddConnection, spark_submit: Path
) -> None:
    with pytest.raises(ConfigError, match=r"there is no Airflow connection 'cluster' \(spark.connection\)"):
        operator_of(archive("spark: {connection: cluster}\n")).execute(context_of())
    assert not (spark_submit / "arguments").exists()


def test_without_a_plan_there_is_nothing_to_submit(archive: MakeArchive) -> None:
    with pytest.raises(PermanentError, match=r"task `plan` .* has no result.*`airflow dags trigger archive_t`"):
        operator_of(archive()).execute({"ti": SimpleNamespace(dag_id="archive_t", xcom_pull=lambda task_ids: None)})


YARN = {"host": "yarn"}
KUBERNETES = {"host": "k8s://https://cluster", "port": 443}


@pytest.fixture
def cluster(
    local_connections: None, connection: AddConnection, kubernetes: None, tmp_path: Path
) -> Callable[..., SubmitHook]:
    """Makes the hook of an archive whose driver runs on another machine."""

    def make(archive: Archive, master: dict[str, Any], mode: str = "cluster") -> SubmitHook:
        connection("spark_default", "spark", {"deploy-mode": mode}, **master)
        return operator_of(archive).hook(archive, RUN, tmp_path, NO_LOCK)

    return make


def test_yarn_ships_the_endpoints_as_a_file_that_only_we_can_read(
    archive: MakeArchive, cluster: Callable[..., SubmitHook], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    configured = archive(f"spark: {{conf: {CONF.replace('spark.app.x', 'spark.files: /their/file, spark.app.x')}}}\n")
    hook = cluster(configured, YARN)
    assert rendered(hook, tmp_path) == (GOLDEN / "yarn.txt").read_text()
    file = tmp_path / "endpoints.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert Endpoints.from_json(file.read_text()) == endpoints(configured)
    assert SECRET not in logged(capfd)


def test_kubernetes_is_told_the_name_of_a_secret_alone(
    archive: MakeArchive, cluster: Callable[..., SubmitHook], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    conf = "{spark.kubernetes.container.image: spark, spark.kubernetes.driver.secretKeyRef.AWS_SECRET: s3:secret}"
    hook = cluster(archive(f"spark: {{kubernetes_secret: orders-endpoints, conf: {conf}}}\n"), KUBERNETES)
    rendered_files = rendered(hook, tmp_path)
    assert rendered_files == (GOLDEN / "kubernetes.txt").read_text()
    assert SECRET not in rendered_files + logged(capfd)
    assert [f.name for f in tmp_path.iterdir() if SECRET in f.read_text(errors="ignore")] == []


def test_kubernetes_without_a_secret_is_told_nothing_and_says_what_to_prepare(
    archive: MakeArchive, cluster: Callable[..., SubmitHook]
) -> None:
    with pytest.raises(ConfigError) as caught:
        cluster(archive(), KUBERNETES)
    message = str(caught.value)
    assert "everybody who may read the driver's pod or ConfigMaps could read them" in message
    assert "kubectl create secret generic archive-orders --from-file=endpoints=endpoints.json" in message
    assert "spark: {kubernetes_secret: archive-orders}" in message
    assert SECRET not in message


@pytest.mark.parametrize(
    ("master", "mode", "conf", "where"),
    [
        (KUBERNETES, "cluster", "spark.hadoop.fs.s3a.secret.key: x", "a ConfigMap"),
        (KUBERNETES, "client", "spark.executorEnv.AWS_SECRET_ACCESS_KEY: x", "the specifications of pods"),
        (YARN, "cluster", "spark.yarn.appMasterEnv.MY_PASSWORD: x", "launch_container.sh"),
        (YARN, "client", "spark.executorEnv.MY_TOKEN: x", "launch_container.sh"),
    ],
)
def test_what_yarn_and_kubernetes_would_show_of_sparks_settings_is_refused(
    archive: MakeArchive, cluster: Callable[..., SubmitHook], master: dict[str, Any], mode: str, conf: str, where: str
) -> None:
    configured = archive(f"spark: {{kubernetes_secret: orders, conf: {{{conf}}}}}\n")
    with pytest.raises(ConfigError, match=f"`{conf.split(':')[0]}` of spark.conf would be readable in .*{where}"):
        cluster(configured, master, mode)


@pytest.mark.parametrize(
    ("master", "conf"),
    [
        # The file with Spark's settings is as private as that with the endpoints.
        (YARN, "spark.hadoop.fs.s3a.secret.key: x"),
        (KUBERNETES, "spark.kubernetes.executor.secretKeyRef.PASSWORD: name:key"),
        (KUBERNETES, "spark.kubernetes.driver.secrets.password: /etc/secrets"),
        (KUBERNETES, "spark.hadoop.hadoop.security.credential.provider.path: jceks://x"),
        (KUBERNETES, "spark.hadoop.fs.s3a.aws.credentials.provider: x"),
        (KUBERNETES, "spark.security.credentials.hive.enabled: false"),
    ],
)
def test_what_only_sounds_secret_or_stays_private_is_taken(
    archive: MakeArchive, cluster: Callable[..., SubmitHook], master: dict[str, Any], conf: str
) -> None:
    cluster(archive(f"spark: {{kubernetes_secret: orders, conf: {{{conf}}}}}\n"), master)


def test_where_the_driver_runs_is_the_connections_alone(
    archive: MakeArchive, cluster: Callable[..., SubmitHook], connection: AddConnection, tmp_path: Path
) -> None:
    # Spark would take it from there too, after we have looked whether others can read what it is told.
    with pytest.raises(ConfigError, match=r"`spark\.submit\.deployMode` .* `deploy-mode` in the extra"):
        cluster(archive("spark: {conf: {spark.submit.deployMode: cluster}}\n"), YARN, "client")
    connection("spark_default", "spark", {}, **YARN)
    hook = operator_of(archive()).hook(archive(), RUN, tmp_path, NO_LOCK)
    assert "\n--deploy-mode\nclient\n" in rendered(hook, tmp_path)


def test_a_standalone_cluster_cannot_run_a_python_driver(
    archive: MakeArchive, local_connections: None, connection: AddConnection, tmp_path: Path
) -> None:
    connection("spark_default", "spark", {"deploy-mode": "cluster"}, host="spark://master", port=7077)
    with pytest.raises(ConfigError, match="set its extra `deploy-mode` to 'client'"):
        operator_of(archive()).hook(archive(), RUN, tmp_path, NO_LOCK)

"""spark-submit as the task calls it: a real process, by a script that stands in for Spark's."""

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.exceptions import AirflowSkipException

from kafka_archiver.errors import ConfigError, PermanentError, TransientError
from kafka_archiver.orchestration.operators import ArchiveOperator
from kafka_archiver.orchestration.submit import ENDPOINTS
from kafka_archiver.spark.failures import MARK
from kafka_archiver.spark.watchdog import TASK_PID
from kafka_archiver.steps.plan import Work
from scripts.stack.java import find_java
from scripts.stack.paths import ROOT
from tests.dags.conftest import SECRET, AddConnection, MakeArchive, dag_of

pytestmark = pytest.mark.dags
GOLDEN = Path(__file__).parent / "golden"
RUNS = ("20261121T040000Z", "20261121T050000Z")
NO_LOCK = -1


@pytest.fixture(autouse=True)
def _may_execute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExecutorSafeguard, "test_mode", True)


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


def operator(archive: Any) -> ArchiveOperator:
    task = dag_of(archive).get_task("archive")
    assert isinstance(task, ArchiveOperator)
    return task


def context(archive: tuple[str, ...] = RUNS, policies: dict[str, str] | None = None) -> Any:
    work = Work(runs=RUNS, archive=archive).to_dict()
    ti = SimpleNamespace(xcom_pull=lambda task_ids: work if task_ids == "plan" else None)
    return {"ti": ti, "params": {"max_records": 1_000, "policies": policies or {}, "rebuild": None}}


def logged(capfd: pytest.CaptureFixture[str]) -> str:
    """What Airflow logged: outside of tasks it writes to standard output."""
    text = capfd.readouterr().out
    assert "Spark-Submit cmd: spark-submit --master" in text
    return text


def test_the_command_is_the_golden_one(
    archive: MakeArchive, local_connections: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = "{spark.executor.memory: 2g, spark.cores.max: 4, spark.log.level: INFO, spark.speculation: false}"
    orders = archive(f"spark: {{conf: {settings}}}\n")
    hook = operator(orders).hook(orders, RUNS, tmp_path, NO_LOCK)
    command = hook._build_spark_submit_command(str(ROOT / "spark_jobs" / "archive.py"))
    shown = "\n".join(command).replace(str(ROOT), "$ROOT").replace(str(tmp_path), "$FOLDER") + "\n"
    assert shown == (GOLDEN / "spark_submit.txt").read_text()
    assert SECRET not in shown + logged(capfd)


def test_the_job_gets_the_endpoints_by_its_environment_and_the_package_by_py_files(
    archive: MakeArchive, local_connections: None, spark_submit: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = operator(archive())
    task.execute(context())
    environment = dict(line.split("=", 1) for line in (spark_submit / "environment").read_text().splitlines())
    assert json.loads(environment[ENDPOINTS])["kafka"]["sasl.password"] == SECRET
    # With it the driver notices when the task is gone.
    assert environment[TASK_PID] == str(os.getpid())
    assert (spark_submit / "package.zip").stat().st_size > 10_000
    arguments = (spark_submit / "arguments").read_text()
    assert "--run\n20261121T040000Z\n--run\n20261121T050000Z\n" in arguments
    assert SECRET not in arguments + logged(capfd)
    assert SECRET not in str([getattr(task, field) for field in task.template_fields])
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
    operator(archive()).execute(context())
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
    operator(orders.model_copy(update={"source": source})).execute(context())
    environment = dict(line.split("=", 1) for line in (spark_submit / "environment").read_text().splitlines())
    assert environment["SPARK_SUBMIT_OPTS"] == driver.format(place=f"-Djava.io.tmpdir={environment['TMPDIR']}")
    assert environment["SPARK_LAUNCHER_OPTS"] == "-XX:TieredStopAtLevel=1"


def test_the_job_knows_the_variable_by_the_same_name() -> None:
    from kafka_archiver.spark import main

    assert main.ENDPOINTS == ENDPOINTS


def test_nothing_to_read_skips_spark(archive: MakeArchive, local_connections: None, spark_submit: Path) -> None:
    with pytest.raises(AirflowSkipException, match="no offsets to read"):
        operator(archive()).execute(context(archive=()))
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
        operator(archive()).execute(context())
    assert type(caught.value) is kind
    # The provider's own error, with the whole command and output, would be shown before ours.
    assert caught.value.__suppress_context__


def test_the_jobs_lines_are_in_the_log(
    archive: MakeArchive, local_connections: None, spark_submit: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (spark_submit / "behave.sh").write_text("echo chunk 1 of 2; echo warned >&2; exit 0")
    operator(archive()).execute(context())
    log = logged(capfd)
    assert "chunk 1 of 2" in log
    assert "warned" in log


def test_a_machine_without_spark_says_so(
    archive: MakeArchive, local_connections: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="spark-submit is not on the PATH of this Airflow worker"):
        operator(archive()).execute(context())


def test_a_missing_spark_connection_is_no_yarn(
    archive: MakeArchive, connection: AddConnection, spark_submit: Path
) -> None:
    with pytest.raises(ConfigError, match=r"there is no Airflow connection 'cluster' \(spark.connection\)"):
        operator(archive("spark: {connection: cluster}\n")).execute(context())
    assert not (spark_submit / "arguments").exists()


def test_without_a_plan_there_is_nothing_to_submit(archive: MakeArchive) -> None:
    with pytest.raises(PermanentError, match="the task `plan` of this DAG run has no result"):
        operator(archive()).execute({"ti": SimpleNamespace(xcom_pull=lambda task_ids: None)})


@pytest.fixture
def kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider wants a client to be installed; a submission that waits for its end does not use it."""
    monkeypatch.setattr("airflow.providers.apache.spark.hooks.spark_submit.kube_client", object(), raising=False)


@pytest.mark.parametrize(
    ("master", "setting"),
    [
        ({"host": "yarn"}, f"spark.yarn.appMasterEnv.{ENDPOINTS}"),
        ({"host": "k8s://https://cluster", "port": 443}, f"spark.kubernetes.driverEnv.{ENDPOINTS}"),
    ],
)
def test_a_driver_on_another_machine_gets_the_endpoints_by_a_file_that_only_we_can_read(
    archive: MakeArchive,
    local_connections: None,
    connection: AddConnection,
    spark_submit: Path,
    kubernetes: None,
    capfd: pytest.CaptureFixture[str],
    master: dict[str, Any],
    setting: str,
) -> None:
    odd = 'back\\slash "quote" \u00e9'
    connection("kafka_default", "kafka", {"bootstrap.servers": "b:1", "sasl.password": odd})
    connection("spark_default", "spark", {"deploy-mode": "cluster"}, **master)
    (spark_submit / "behave.sh").write_text("echo 'exit code: 0'; exit 0")
    operator(archive()).execute(context())
    arguments = (spark_submit / "arguments").read_text()
    assert "--deploy-mode\ncluster\n" in arguments
    # Else a properties file would replace spark-defaults.conf.
    assert "--load-spark-defaults\n" in arguments
    log = logged(capfd)
    assert not [word for word in ("slash", "quote", SECRET) if word in arguments + log]
    properties = spark_submit / "properties"
    assert properties.stat().st_mode & 0o777 == 0o600
    lines = dict(line.split("=", 1) for line in properties.read_text().splitlines())
    assert json.loads(lines[setting].replace("\\\\", "\\"))["kafka"]["sasl.password"] == odd
    assert "kafka_archiver_endpoints" in lines["spark.redaction.regex"]


def test_java_reads_the_properties_as_they_were_written(
    archive: MakeArchive, local_connections: None, connection: AddConnection, tmp_path: Path
) -> None:
    odd = 'back\\slash "quote" \u00e9 = : #!'
    connection("kafka_default", "kafka", {"bootstrap.servers": "b:1", "sasl.password": odd})
    connection("spark_default", "spark", {"deploy-mode": "cluster"}, host="yarn")
    operator(archive()).hook(archive(), RUNS, tmp_path, NO_LOCK)
    program = tmp_path / "Show.java"
    program.write_text(
        "import java.io.*; import java.util.*; class Show { public static void main(String[] a) throws Exception {"
        ' Properties p = new Properties(); p.load(new InputStreamReader(new FileInputStream(a[0]), "UTF-8"));'
        f' System.out.print(p.getProperty("spark.yarn.appMasterEnv.{ENDPOINTS}")); }} }}'
    )
    shown = subprocess.run(
        [find_java().executable, program, tmp_path / "endpoints.properties"], capture_output=True, text=True, check=True
    )
    assert json.loads(shown.stdout)["kafka"]["sasl.password"] == odd


def test_a_standalone_cluster_cannot_run_a_python_driver(
    archive: MakeArchive, local_connections: None, connection: AddConnection, tmp_path: Path
) -> None:
    connection("spark_default", "spark", {"deploy-mode": "cluster"}, host="spark://master", port=7077)
    with pytest.raises(ConfigError, match="set its extra `deploy-mode` to 'client'"):
        operator(archive()).hook(archive(), RUNS, tmp_path, NO_LOCK)

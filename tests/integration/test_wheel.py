"""The wheel in an Airflow that knows nothing of this checkout: what a user installs, and what it then does.

AIRFLOW_CONSTRAINTS names a file or an address of other versions than those of requirements.txt: the constraints that
Airflow publishes. Where their address is out of reach, this makes them as Airflow does, from its day of release:
    echo 'apache-airflow[all]==3.3.2' | uv pip compile --python-version 3.12 --exclude-newer 2026-09-18 -o FILE -
with the version of .venv's Python.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.stack.java import find_java
from scripts.stack.kafka import Kafka
from scripts.stack.paths import BIN, ROOT
from scripts.stack.s3 import S3
from scripts.stack.stack import connections
from scripts.wheel import build_wheel
from tests.support.topics import DAY, Record, new_topic, produce

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a plain Airflow, into which the wheel is installed."""
    folder = tmp_path_factory.mktemp("airflow")
    uv, python = BIN / "uv", folder / "venv" / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--python", BIN / "python", python.parents[1]], check=True)
    airflow = f"apache-airflow=={PINS['apache-airflow']}"
    constraints = os.environ.get("AIRFLOW_CONSTRAINTS") or ROOT / "requirements.txt"
    install = [uv, "pip", "install", "--quiet", "--python", python, "--constraint", constraints]
    # One step: some platforms hold every package to Airflow's constraints.
    subprocess.run([*install, airflow, f"{wheel}[airflow]"], check=True)
    subprocess.run([uv, "pip", "check", "--quiet", "--python", python], check=True)
    return python


def test_the_wheel_has_the_package_with_all_its_files_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "kafka_archiver"],
        cwd=ROOT / "include", capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    expected = {name for name in tracked if (ROOT / "include" / name).is_file()}
    binary = {name for name in names if name.endswith(".so")}
    assert len(binary) == (2 if shutil.which(os.environ.get("CC", "cc")) else 0)
    assert {name for name in names if ".dist-info/" not in name} == expected | binary
    assert {"kafka_archiver/py.typed", "kafka_archiver/driver/spark_jobs/archive.py"} < expected
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]


def test_an_airflow_with_the_wheel_and_a_dag_file_of_two_lines_archives_a_topic(
    python: Path, kafka: Kafka, s3: S3, tmp_path: Path
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 2)
    values = [json.dumps({"n": n}).encode() for n in range(20)]
    produce(kafka.bootstrap_servers, topic, [Record(n % 2, DAY + n, value) for n, value in enumerate(values)])
    dags = tmp_path / "dags"
    (dags / "archives").mkdir(parents=True)
    (dags / "archives.py").write_text("from kafka_archiver import airflow_dags\nglobals().update(airflow_dags())\n")
    (dags / "archives" / "orders.yaml").write_text(
        f"archive: orders\nsource: {{topics: [{topic}]}}\nstore: {{url: 's3://archive/{topic}'}}\n"
    )
    environment = settings_of(python, kafka, s3, tmp_path)

    def airflow(*words: str) -> str:
        command = [str(python.with_name("airflow")), *words]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    airflow("db", "migrate")
    airflow("dags", "test", "archive_orders")
    client = s3.client()
    listed = client.list_objects_v2(Bucket=s3.bucket, Prefix=f"{topic}/{topic}/")["Contents"]
    bodies = [client.get_object(Bucket=s3.bucket, Key=item["Key"])["Body"].read() for item in listed]
    assert sorted(line for body in bodies for line in gzip.decompress(body).splitlines()) == sorted(values)
    [status] = json.loads(airflow("archive", "status", "orders", "-o", "json"))
    assert status["lag"] == 0
    looked = subprocess.run(
        [python, "-c", LOOK], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert looked.returncode == 0, looked.stderr[-3000:]
    assert json.loads(looked.stdout.splitlines()[-1]) == {
        "page": [200, "text/css; charset=utf-8"],
        "listeners": [
            "kafka_archiver.orchestration.before_fork",
            "kafka_archiver.orchestration.metadata.notes",
        ],
        # Executors get the versions of what is installed here.
        "left_out": ["avro", "azure", "json-schema", "protobuf"],
    }


# One process, for each takes seconds: Airflow's API server with what plugins bring, and the executors' versions.
LOOK = """
import json
from airflow import plugins_manager
from airflow.api_fastapi.app import create_app
from fastapi.testclient import TestClient
from kafka_archiver.orchestration.cli.requirements import executor_packages
answer = TestClient(create_app()).get("/archiver/static/page.css")
[plugin] = [plugin for plugin in plugins_manager._get_plugins()[0] if plugin.name == "archiver"]
print(json.dumps({
    "page": [answer.status_code, answer.headers["content-type"]],
    "listeners": [listener.__name__ for listener in plugin.listeners],
    "left_out": executor_packages()[1],
}))
"""


def settings_of(python: Path, kafka: Kafka, s3: S3, home: Path) -> Mapping[str, str]:
    """Return the environment of a person who has a Java, three connections, and nothing of this checkout."""
    java = find_java().home
    variables = {
        f"AIRFLOW_CONN_{c.connection_id.upper()}": json.dumps(
            {
                key: value
                for key, value in {**c.document(), "extra": c.extra}.items()
                if value and key != "connection_id"
            }
        )
        for c in connections(kafka, s3)
    }
    return {
        **variables,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "HOME": str(home),
        "JAVA_HOME": str(java),
        "PATH": f"{python.parent}:{java}/bin:{os.environ['PATH']}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(home),
        "TMPDIR": str(home),
    }

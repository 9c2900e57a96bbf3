"""The task `archive` on Kubernetes: the objects that Spark's own spark-submit gives to an API that takes them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_archiver.jobs.endpoints import ENDPOINTS
from scripts.stack.java import find_java
from scripts.stack.paths import BIN, SPARK_HOME
from tests.dags.conftest import SECRET, AddConnection, MakeArchive, context_of, logged, operator_of
from tests.support.kubernetes_api import KubernetesApi

pytestmark = [pytest.mark.dags, pytest.mark.slow, pytest.mark.usefixtures("may_execute")]


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with KubernetesApi().serving() as serving:
        yield serving


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spark's own spark-submit, with settings of nobody."""
    (tmp_path / "conf").mkdir()
    for name, value in {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_CONF_DIR": str(tmp_path / "conf"),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        # No kubeconfig of a person's own.
        "KUBECONFIG": str(tmp_path / "none"),
    }.items():
        monkeypatch.setenv(name, value)


def test_neither_the_pod_nor_a_config_map_has_the_endpoints(
    archive: MakeArchive,
    local_connections: None,
    connection: AddConnection,
    kubernetes: None,
    api: KubernetesApi,
    spark: None,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    connection("spark_default", "spark", {"deploy-mode": "cluster"}, host=f"k8s://{api.url}")
    conf = {
        "spark.kubernetes.container.image": "spark",
        "spark.kubernetes.file.upload.path": (tmp_path / "uploads").as_uri(),
        "spark.app.x": "{{APP_ID}}",
    }
    operator_of(archive(f"spark: {{kubernetes_secret: orders, conf: {json.dumps(conf)}}}\n")).execute(context_of())
    assert {"Pod", "ConfigMap"} <= set(api.objects)
    [driver] = api.objects["Pod"]["spec"]["containers"]
    variables = {v["name"]: v for v in driver["env"]}
    assert variables[ENDPOINTS] == {
        "name": ENDPOINTS,
        "valueFrom": {"secretKeyRef": {"name": "orders", "key": "endpoints"}},
    }
    assert "spark.app.x={{APP_ID}}" in api.objects["ConfigMap"]["data"]["spark.properties"]
    uploads = [f for f in (tmp_path / "uploads").rglob("*") if f.is_file()]
    assert {f.suffix for f in uploads if not f.name.startswith(".")} == {".py", ".zip"}
    texts = [json.dumps(api.objects), logged(capfd), *(f.read_text(errors="ignore") for f in uploads)]
    for what in (SECRET, "broker:9092", "AKIDEXAMPLE"):
        assert not [text for text in texts if what in text]

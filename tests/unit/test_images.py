"""The Dockerfiles, as far as they can be checked without an engine that builds them."""

from __future__ import annotations

import io
import json
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from dockerfile_parse import DockerfileParser
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kafka_archiver.config import parse_archive
from scripts.stack.paths import ROOT

pytestmark = pytest.mark.unit
IMAGES = ROOT / "include" / "images"
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
INSTRUCTIONS = {"COMMENT", "ARG", "FROM", "COPY", "RUN", "USER", "ENV", "WORKDIR", "ENTRYPOINT"}
JAR = re.search(r'name="spark-sql-kafka[^"]*" rev="([^"]+)"', (ROOT / "scripts/stack/ivy.xml").read_text())


class Copy(NamedTuple):
    """One source of a COPY. `stage`: where it is from; None: the build's context."""

    stage: str | None
    source: str


def instructions(text: str) -> list[tuple[str, str]]:
    return [(i["instruction"], i["value"]) for i in DockerfileParser(fileobj=io.BytesIO(text.encode())).structure]


def copies(text: str) -> Iterator[Copy]:
    for instruction, value in instructions(text):
        if instruction == "COPY":
            words = value.split()
            options = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
            *sources, _ = [word for word in words if not word.startswith("--")]
            yield from (Copy(options.get("from"), source) for source in sources)


def stages(text: str) -> list[tuple[str, str]]:
    """Return each stage's base image and name."""
    bases = [value.split() for instruction, value in instructions(text) if instruction == "FROM"]
    return [(words[0], words[2] if words[1:2] == ["AS"] else "") for words in bases]


def ignored(path: str, rules: list[str]) -> bool:
    """Return True if .dockerignore keeps a path of the checkout out: the last rule that fits decides."""
    verdict = False
    for rule in rules:
        pattern = rule.removeprefix("!")
        parts = [path, *(str(parent) for parent in Path(path).parents)]
        if any(fnmatch(part, pattern) or fnmatch(part, pattern.removeprefix("**/")) for part in parts):
            verdict = not rule.startswith("!")
    return verdict


def problems(text: str) -> list[str]:
    """Return what a build would fail of, as far as that is to be seen."""
    rules = (ROOT / ".dockerignore").read_text().split()
    names = [name for _, name in stages(text)]
    unknown = {name for name, _ in instructions(text)} - INSTRUCTIONS
    faults = [f"no instruction: {name}" for name in sorted(unknown)]
    for copy in copies(text):
        if copy.stage is None:
            faults += [f"no such file: {copy.source}"] * (not (ROOT / copy.source).exists())
            faults += [f"kept out: {copy.source}"] * ignored(copy.source, rules)
        elif copy.stage not in names[:-1]:
            faults.append(f"no such stage: {copy.stage}")
    for extras in re.findall(r"\.whl\)\[([\w,-]+)\]", text):
        faults += [f"no such extra: {e}" for e in extras.split(",") if e not in PROJECT["optional-dependencies"]]
        faults += [f"not in requirements.txt: {name}" for name in unpinned(extras.split(","))]
    return faults


def unpinned(extras: list[str]) -> list[str]:
    lines = [*PROJECT["dependencies"], *(line for e in extras for line in PROJECT["optional-dependencies"].get(e, []))]
    needs = [need for need in map(Requirement, lines) if need.name != PROJECT["name"]]
    versions = {need: PINS.get(canonicalize_name(need.name)) for need in needs}
    return [str(need) for need, version in versions.items() if not version or version not in need.specifier]


@pytest.mark.parametrize("name", ["airflow", "executor"])
def test_everything_that_the_image_copies_and_installs_exists(name: str) -> None:
    text = (IMAGES / f"{name}.Dockerfile").read_text()
    assert problems(text) == []
    assert [value for instruction, value in instructions(text) if instruction == "USER"][-1] != "root"


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("LICENSE README.md", "LICENCE README.md", "no such file: LICENCE"),
        ("COPY requirements.txt", "COPY CHANGELOG.md requirements.txt", "kept out: CHANGELOG.md"),
        ("--from=wheel", "--from=wheels", "no such stage: wheels"),
        ("[executor]", "[executors]", "no such extra: executors"),
        ("[executor]", "[executor,airflow-of-tomorrow]", "no such extra: airflow-of-tomorrow"),
        ("USER spark", "USERS spark", "no instruction: USERS"),
    ],
)
def test_the_check_finds_what_a_build_would_fail_of(right: str, wrong: str, problem: str) -> None:
    text = (IMAGES / "executor.Dockerfile").read_text()
    assert right in text
    assert problem in problems(text.replace(right, wrong, 1))


def test_images_have_the_versions_of_the_lock_file_and_one_python() -> None:
    airflow, executor = ((IMAGES / f"{name}.Dockerfile").read_text() for name in ("airflow", "executor"))
    python = "${PYTHON}"
    assert all(("ARG", "PYTHON=3.11") in instructions(text) for text in (airflow, executor))
    assert [base for base, _ in stages(airflow)] == [
        f"python:{python}-slim-bookworm",
        f"apache/airflow:slim-{PINS['apache-airflow']}-python{python}",
    ]
    assert [base for base, _ in stages(executor)] == [
        f"python:{python}-slim-bookworm",
        f"apache/spark:{PINS['pyspark']}-scala2.13-java17-ubuntu",
        f"python:{python}-slim-bookworm",
    ]
    assert PINS["pyspark"] == PINS["pyspark-client"] == (JAR and JAR[1])
    assert all(f"PYSPARK_PYTHON=python{python}" in text for text in (airflow, executor))
    assert all(f":{PROJECT['version']} ." in text for text in (airflow, executor))


def test_the_guide_names_images_that_are_built_and_its_yaml_is_yaml() -> None:
    values, archive = (
        yaml.safe_load(block)
        for page in ("helm.md", "kubernetes.md")
        for block in re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / "install" / page).read_text(), re.M | re.S)
    )
    assert values["airflowVersion"] == PINS["apache-airflow"]
    image = f"{values['defaultAirflowRepository']}:{values['defaultAirflowTag']}"
    assert image.endswith(f"/kafka-archiver-airflow:{PROJECT['version']}")
    assert [mount["name"] for mount in values["volumeMounts"]] == [volume["name"] for volume in values["volumes"]]
    assert {entry["name"]: entry["value"] for entry in values["env"]} == {
        "ARCHIVER_CONFIG_DIR": values["volumeMounts"][0]["mountPath"]
    }
    text = yaml.safe_dump({"archive": "a", "source": {"topics": ["t"]}, "store": {"url": "s3://b/p"}, **archive})
    used = parse_archive(text, "a.yaml").spark.conf["spark.kubernetes.container.image"]
    assert used.endswith(f"/kafka-archiver-executor:{PROJECT['version']}")


def test_the_executors_image_has_no_airflow() -> None:
    text = (IMAGES / "executor.Dockerfile").read_text()
    assert re.findall(r"\.whl\)\[(.*)\]", text) == ["executor"]
    assert json.loads(next(v for i, v in instructions(text) if i == "ENTRYPOINT")) == ["/opt/entrypoint.sh"]

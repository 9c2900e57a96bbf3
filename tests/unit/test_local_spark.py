"""The version of Java that Spark would start, without starting it where possible."""

from pathlib import Path

import pytest

from kafka_archiver.context.local_spark import java_program, java_version


def installed(home: Path, release: str | None, shown: str) -> dict[str, str]:
    """The environment of a machine with a Java that prints `shown`."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{shown}' >&2\n")
    program.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return {"JAVA_HOME": str(home)}


@pytest.mark.parametrize(
    ("release", "shown", "version"),
    [
        ('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\n', "no", "17"),
        ('JAVA_VERSION="25"\n', "no", "25"),
        (None, 'openjdk version "21.0.4" 2024-07-16 LTS', "21"),
        ("nothing\n", 'java version "21-ea"', "21"),
        (None, "it is broken", None),
    ],
)
def test_the_version_is_that_of_the_file_release_or_what_java_says(
    tmp_path: Path, release: str | None, shown: str, version: str | None
) -> None:
    assert java_version(installed(tmp_path, release, shown)) == version


def test_java_home_comes_before_the_path_and_none_is_none(tmp_path: Path) -> None:
    environment = installed(tmp_path, None, "")
    assert java_program({**environment, "PATH": "/nowhere"}) == str(tmp_path / "bin" / "java")
    assert java_program({"PATH": str(tmp_path / "bin")}) == str(tmp_path / "bin" / "java")
    assert java_version({"PATH": str(tmp_path)}) is None
    assert java_version({"JAVA_HOME": "/nowhere"}) is None

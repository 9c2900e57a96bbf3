"""Finds Java for Kafka and Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from scripts.stack.errors import StackError

NEEDED = 17
ADVICE = "install a Java 17 runtime (Debian: apt-get install openjdk-17-jre-headless) or point JAVA_HOME at one"


@dataclass(frozen=True)
class Java:
    home: Path
    version: int

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The Java of JAVA_HOME if it is set, else the one on PATH.

    :raises StackError: there is no Java, it does not run, or it is older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else "java"
    java = shutil.which(command)
    if java is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "none is on PATH and JAVA_HOME is not set"
        raise StackError(f"Java {NEEDED} or newer is needed for Kafka and Spark, but {where}: {ADVICE}")
    # The java on PATH is often a link or a wrapper, so ask Java for its home.
    shown = subprocess.run([java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=False)
    properties = dict(re.findall(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", shown.stderr, re.M))
    if shown.returncode != 0 or len(properties) != 2:
        raise StackError(f"Java {NEEDED} or newer is needed for Kafka and Spark, but {java} does not run: {ADVICE}")
    # Java 8 has "1.8", Java 17 has "17".
    version = int(properties["java.specification.version"].removeprefix("1."))
    if version < NEEDED:
        raise StackError(
            f"Java {NEEDED} or newer is needed for Kafka and Spark, but {java} is Java {version}: {ADVICE}"
        )
    return Java(Path(properties["java.home"]), version)

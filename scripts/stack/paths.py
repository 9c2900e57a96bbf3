"""Paths of this checkout. The stack writes only below LOCAL and VENV."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / ".local"
TEMPORARY = LOCAL / "tmp"
VENV = ROOT / ".venv"
BIN = VENV / "bin"
# The running Python has the version of .venv's: scripts/stack/install.py sees to it.
SPARK_HOME = VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages" / "pyspark"
KAFKA_TOOLS = LOCAL / "bin"
BROKER_JARS = LOCAL / "jars" / "broker"
SPARK_JARS = LOCAL / "jars" / "spark"

"""Paths of this checkout. The stack writes only below LOCAL and VENV."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / ".local"
TEMPORARY = LOCAL / "tmp"
VENV = ROOT / ".venv"
BIN = VENV / "bin"
SPARK_HOME = VENV / "lib" / "python3.11" / "site-packages" / "pyspark"
KAFKA_TOOLS = LOCAL / "bin"
BROKER_JARS = LOCAL / "jars" / "broker"
SPARK_JARS = LOCAL / "jars" / "spark"

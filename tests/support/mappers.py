"""Modules with mappers, in a folder of a test."""

import importlib
import sys
import uuid
from pathlib import Path

HEAD = "from kafka_archiver.mapper import Record\nimport pyarrow as pa\nimport pyarrow.compute as pc\n"


def write_module(folder: Path, code: str, name: str = "") -> str:
    """Write a module with a name that no other test has, where Python finds it. Returns the name."""
    name = name or f"mapper_{uuid.uuid4().hex[:12]}"
    (folder / f"{name}.py").write_text(HEAD + code)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    importlib.invalidate_caches()
    return name

"""docs/howto/read.md: its programs work as written."""

import re
import subprocess
import sys
import uuid

import pytest

from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range
from scripts.stack.paths import ROOT
from tests.support.lake import Lake
from tests.support.runs import P0

pytestmark = pytest.mark.contract
PROGRAMS = re.findall(
    r"^```python\n(.*?)^```$",
    (ROOT / "docs" / "howto" / "read.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


def test_the_programs_read_an_archive(capsys: pytest.CaptureFixture[str]) -> None:
    name = uuid.uuid4().hex
    lake = Lake(MemoryStore(name), {P0: Range(0, 5)}, {"format": "parquet", "content": "record"}, name="sales")
    lake.run(5)
    frames: list[object] = []

    class Session:
        """Takes what it is given: tests/spark has a real one."""

        def createDataFrame(self, data: object) -> "Session":  # noqa: N802 - Spark's
            frames.append(data)
            return self

        def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 - Spark's
            assert name == "orders"

    space: dict[str, object] = {"spark": Session()}
    for program in PROGRAMS:
        exec(program.replace("s3://archive/lake", f"memory://{name}"), space)
    shown = capsys.readouterr().out
    assert "[(5,)]" in shown
    assert sum(map(int, re.findall(r"^\d+$", shown, re.MULTILINE))) == 3
    assert '{"n": 4}' in shown
    assert frames == [space["orders"]]


def test_the_import_is_light_and_reading_needs_neither_airflow_nor_spark_nor_kafka() -> None:
    program = (
        "import sys; from kafka_archiver import open_archive; first = set(sys.modules); "
        "open_archive('memory://x', 'orders'); print(*first); print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "include")}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    first, second = (set(line.split()) for line in run.stdout.splitlines())
    assert not first & {"pyarrow", "pydantic", "numpy"}
    assert not second & {"airflow", "pyspark", "confluent_kafka", "boto3", "yaml", "httpx", "cryptography"}

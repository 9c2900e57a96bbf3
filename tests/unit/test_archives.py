"""The archives of a folder as values, which a page may show as `airflow archive list` does; no Airflow in sight."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_archiver.steps.archives import ArchiveSummary, read_archives

pytestmark = pytest.mark.unit
YAML = "archive: {name}\nsource: {{topics: [orders, payments]}}\nstore: {{url: s3://lake/raw}}\n"


def test_an_archive_in_a_few_words_says_where_it_is_declared_and_which_dag_it_has(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(YAML.format(name="orders"))
    found = read_archives(tmp_path)
    assert ArchiveSummary.of(found.found["orders"], found.files["orders"]).model_dump() == {
        "archive": "orders",
        "dag_id": "archive_orders",
        "topics": ("orders", "payments"),
        "pattern": None,
        "group": "archiver-orders",
        "store": "s3://lake/raw",
        "schedule": "0 * * * *",
        "timezone": "UTC",
        "file": str(tmp_path / "b.yaml"),
    }


def test_of_two_files_with_one_name_the_one_that_is_called_like_it_is_the_archives(tmp_path: Path) -> None:
    for file in ("a copy.yaml", "orders.yaml"):
        (tmp_path / file).write_text(YAML.format(name="orders"))
    (tmp_path / "broken.yaml").write_text("archive: [")
    found = read_archives(tmp_path)
    assert found.files == {"orders": tmp_path / "orders.yaml"}
    assert [str(error).partition(":")[0] for error in found.errors] == [
        str(tmp_path / "broken.yaml"),
        str(tmp_path / "a copy.yaml"),
    ]

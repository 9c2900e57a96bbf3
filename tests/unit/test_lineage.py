"""The lineage that OpenLineage gets of a run, by a stand-in for the provider, which need not be installed."""

import sys
import uuid
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kafka_archiver.orchestration.submit.lineage import RECORD, TopicOutput, operator_lineage, sum_up
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.support.lake import Lake

pytestmark = pytest.mark.unit
A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def test_rows_bytes_and_files_are_those_of_the_manifests_by_topic() -> None:
    lake = Lake(MemoryStore(uuid.uuid4().hex), {A: Range(0, 3), B: Range(0, 2)}, {"content": "record"})
    runs = [lake.run(0)]
    lake.logs.update({A: Range(0, 4), B: Range(0, 2)})
    runs.append(lake.run(1))
    done = [(lake.ledger.plan(run), lake.ledger.manifest(run)) for run in runs]
    datasets = sum_up((plan, manifest) for plan, manifest in done if plan and manifest)
    assert [(dataset.topic, dataset.rows, dataset.fields) for dataset in datasets] == [
        ("a", 4, RECORD),
        ("b", 2, RECORD),
    ]
    for dataset in datasets:
        stored = list(lake.store.list(f"{dataset.topic}/"))
        assert (dataset.bytes, dataset.files) == (sum(stat.size for stat in stored), len(stored))


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names that we use of the provider and its client."""

    def module(name: str, **content: Any) -> None:
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)

    class Given(SimpleNamespace):
        pass

    module("openlineage")
    module("openlineage.client")
    module("openlineage.client.event_v2", InputDataset=Given, OutputDataset=Given)
    facets = {
        "output_statistics_output_dataset": SimpleNamespace(OutputStatisticsOutputDatasetFacet=Given),
        "schema_dataset": SimpleNamespace(SchemaDatasetFacet=Given, SchemaDatasetFacetFields=Given),
    }
    module("openlineage.client.facet_v2", **facets)
    module("airflow.providers.openlineage")
    module("airflow.providers.openlineage.extractors", OperatorLineage=Given)


def test_datasets_have_the_names_that_openlineage_s_specification_gives_them(provider: None) -> None:
    datasets = [TopicOutput("orders", 5, 100, 2, RECORD), TopicOutput("plain", 1, 10, 1, ())]
    lineage = operator_lineage("s3://bucket/lake/", "broker-1:9092,broker-2:9092", datasets)
    assert [(dataset.namespace, dataset.name) for dataset in lineage.inputs] == [
        ("kafka://broker-1:9092", "orders"), ("kafka://broker-1:9092", "plain"),
    ]  # fmt: skip
    assert [(dataset.namespace, dataset.name) for dataset in lineage.outputs] == [
        ("s3://bucket", "lake/orders"), ("s3://bucket", "lake/plain"),
    ]  # fmt: skip
    figures = lineage.outputs[0].outputFacets["outputStatistics"]
    assert (figures.rowCount, figures.size, figures.fileCount) == (5, 100, 2)
    assert [field.name for field in lineage.outputs[0].facets["schema"].fields] == [name for name, _ in RECORD]
    assert lineage.outputs[1].facets == {}

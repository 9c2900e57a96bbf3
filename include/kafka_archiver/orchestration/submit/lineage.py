"""OpenLineage: which topics a task has read, and what it has written to the store, if Airflow's provider is installed.

Pure, except for `operator_lineage`, which imports the provider.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Plan

# The columns of `content: record` and their types, in OpenLineage's words.
RECORD = (
    ("topic", "string"), ("partition", "int"), ("offset", "bigint"), ("timestamp", "bigint"), ("timestamp_type", "int"),
    ("key", "binary"), ("value", "binary"), ("headers", "array"),
)  # fmt: skip


class Written(NamedTuple):
    """What was written of one topic: dead letters and sidecars count as files and bytes, not as rows."""

    topic: str
    rows: int
    bytes: int
    files: int
    fields: tuple[tuple[str, str], ...]


def written(done: Iterable[tuple[Plan, Manifest]]) -> list[Written]:
    """What these runs have written, by topic; topics of which they read nothing are left out."""
    pairs = list(done)
    topics = sorted({chunk.topic for _, manifest in pairs for chunk in manifest.chunks})
    return [_of_topic(topic, pairs) for topic in topics]


def _of_topic(topic: str, pairs: Sequence[tuple[Plan, Manifest]]) -> Written:
    stored = [one for _, manifest in pairs for one in manifest.stored if one.topic == topic]
    rows = sum(one.rows for _, manifest in pairs for one in manifest.objects if one.topic == topic)
    records = all(plan.settings.content == "record" for plan, _ in pairs)
    return Written(topic, rows, sum(one.bytes for one in stored), len(stored), RECORD if records else ())


def operator_lineage(url: str, brokers: str, found: Sequence[Written]) -> Any:
    """The result for Airflow's provider of OpenLineage: a dataset of Kafka and one of the store for each topic.

    :param url: the store's, as s3://bucket/prefix.
    :param brokers: `bootstrap.servers`; the first one names the cluster.
    """
    from airflow.providers.openlineage.extractors import OperatorLineage  # type: ignore[import-not-found]
    from openlineage.client.event_v2 import InputDataset, OutputDataset  # type: ignore[import-not-found]
    from openlineage.client.facet_v2 import (  # type: ignore[import-not-found]
        output_statistics_output_dataset as statistics,
    )
    from openlineage.client.facet_v2 import schema_dataset as schema

    store = urlsplit(url)
    kafka = f"kafka://{brokers.split(',')[0].strip()}"

    def output(one: Written) -> Any:
        fields = [schema.SchemaDatasetFacetFields(name=name, type=kind) for name, kind in one.fields]
        figures = statistics.OutputStatisticsOutputDatasetFacet(rowCount=one.rows, size=one.bytes, fileCount=one.files)
        return OutputDataset(
            namespace=f"{store.scheme}://{store.netloc}",
            name="/".join(filter(None, [store.path.strip("/"), one.topic])),
            facets={"schema": schema.SchemaDatasetFacet(fields=fields)} if fields else {},
            outputFacets={"outputStatistics": figures},
        )

    inputs = [InputDataset(namespace=kafka, name=one.topic) for one in found]
    return OperatorLineage(inputs=inputs, outputs=[output(one) for one in found])

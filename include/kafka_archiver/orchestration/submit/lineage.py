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


class TopicOutput(NamedTuple):
    """The files of one topic: dead letters and sidecars count as files and bytes, not as rows."""

    topic: str
    rows: int
    bytes: int
    files: int
    fields: tuple[tuple[str, str], ...]


def sum_up(done: Iterable[tuple[Plan, Manifest]]) -> list[TopicOutput]:
    """Sum up what these runs have written, by topic; topics of which they read nothing are left out."""
    pairs = list(done)
    topics = sorted({chunk.topic for _, manifest in pairs for chunk in manifest.chunks})
    return [_of_topic(topic, pairs) for topic in topics]


def _of_topic(topic: str, pairs: Sequence[tuple[Plan, Manifest]]) -> TopicOutput:
    stored = [entry for _, manifest in pairs for entry in manifest.stored if entry.topic == topic]
    rows = sum(entry.rows for _, manifest in pairs for entry in manifest.objects if entry.topic == topic)
    records = all(plan.settings.content == "record" for plan, _ in pairs)
    return TopicOutput(topic, rows, sum(entry.bytes for entry in stored), len(stored), RECORD if records else ())


def operator_lineage(url: str, brokers: str, topics: Sequence[TopicOutput]) -> Any:
    """Return the result for Airflow's provider of OpenLineage: two datasets, of Kafka and of the store, for each topic.

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

    def output(topic: TopicOutput) -> Any:
        fields = [schema.SchemaDatasetFacetFields(name=name, type=kind) for name, kind in topic.fields]
        figures = statistics.OutputStatisticsOutputDatasetFacet(
            rowCount=topic.rows, size=topic.bytes, fileCount=topic.files
        )
        return OutputDataset(
            namespace=f"{store.scheme}://{store.netloc}",
            name="/".join(filter(None, [store.path.strip("/"), topic.topic])),
            facets={"schema": schema.SchemaDatasetFacet(fields=fields)} if fields else {},
            outputFacets={"outputStatistics": figures},
        )

    inputs = [InputDataset(namespace=kafka, name=topic.topic) for topic in topics]
    return OperatorLineage(inputs=inputs, outputs=[output(topic) for topic in topics])

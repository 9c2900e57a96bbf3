"""The schema registry: whether it answers, and has the schemas of the newest records."""

from collections.abc import Iterable, Iterator

from kafka_archiver.config import Archive
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.reader import read_chunk
from kafka_archiver.kafka.topics import Topic
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.decode.frames import schema_id
from kafka_archiver.records.decode.schema_registry import Registry
from kafka_archiver.state.doctor.check import Finding, ok, problem, tried, warning
from kafka_archiver.state.doctor.newest import PATIENCE_SECONDS, TOPICS, newest, topics_of

REGISTRY = "schema registry"


def check_registry(archive: Archive, cluster: Cluster | None, registry: Registry | None) -> Iterator[Finding]:
    """Check the registry that the archive names, if it names one.

    :param cluster: None if the brokers' connection is missing or wrong.
    """
    if registry is None:
        yield ok(REGISTRY, "not configured")
        return
    try:
        level = registry.compatibility()
    except ArchiverError as error:
        needed = any(decoding.is_framed(True) for decoding in archive.source.decoded.values())
        means = (
            "no run of topics with new records gets a plan; runs that are planned already go on"
            if needed
            else "runs do not need it, but values that were encoded with its schemas cannot be decoded without them"
        )
        yield problem(REGISTRY, str(error), means)
        return
    yield ok(REGISTRY, f"{registry.url} answers; compatibility level {foreign(level)}")
    if cluster is None:
        return
    topics = list(topics_of(archive, cluster))
    for topic in topics[:TOPICS]:
        yield from tried(f"schemas of {topic.name}", lambda: [_schemas(archive, cluster, registry, topic)])  # noqa: B023 - at once
    if len(topics) > TOPICS:
        yield ok("schemas", f"only the first {TOPICS} of {len(topics)} topics were checked")


def _schemas(archive: Archive, cluster: Cluster, registry: Registry, topic: Topic) -> Finding:
    name = f"schemas of {topic.name}"
    first_places: dict[int, str] = {}
    for place, value in _newest(archive, cluster, topic):
        number = schema_id(value)
        if number is not None:
            first_places.setdefault(number, place)
    if not first_places:
        return ok(name, "no schema id in its newest records")
    schemas = {number: registry.schema(number) for number in sorted(first_places)}
    if missing := [number for number, schema in schemas.items() if schema is None]:
        return warning(
            name,
            f"the value of {first_places[missing[0]]} begins like a value with schema {missing[0]}, which "
            f"{registry.url} does not have",
            "the archive keeps the value as it is, but the value cannot be decoded without this schema",
            "name the registry that the producer uses in `source.registry`",
            "restore the schema under its id (the registry's import mode, or its topic `_schemas`)",
            "nothing, if no serializer of a registry made these values: then they only begin like one",
        )
    shown = ", ".join(f"{number} ({schema.kind})" for number, schema in schemas.items() if schema)
    return ok(name, f"the schemas of its newest records are there: {shown}")


def _newest(archive: Archive, cluster: Cluster, topic: Topic) -> Iterable[tuple[str, bytes]]:
    """Yield the values of a topic's newest records, each with its partition and offset."""
    settings = Settings(isolation=archive.source.isolation)
    for chunk in newest(archive, cluster, topic):
        for batch in read_chunk(cluster.properties, archive.group, chunk, settings, PATIENCE_SECONDS):
            for offset, value in zip(batch.column("offset"), batch.column("value"), strict=True):
                if value.is_valid:
                    yield f"{chunk.name} offset {offset}", value.as_py()

"""The keys that all connectors of Kafka Connect share: names, topics, converters, the consumer group."""

from typing import Any, NamedTuple

from kafka_archiver.config.properties import is_plain_address
from kafka_archiver.config.source import GROUP
from kafka_archiver.imports.base import Keys, Kind, words

_DIFFERS = {
    "tasks.max": "the plan's chunks are the units of work; Spark's cores decide how many are written at once",
    "connector.class": "the tool that this YAML replaces",
    "retry.backoff.ms": "requests to the store are retried with backoff; a failed task by Airflow (`retries`)",
    "config.action.reload": "each run reads the YAML and the connections again",
    "errors.retry.timeout": "a failed task is retried by Airflow (`retries`)",
    "errors.retry.delay.max.ms": "a failed task is retried by Airflow, with backoff",
    "errors.log.enable": "a run that fails names each bad record; with `dead_letter`, each letter has its reason",
    "errors.log.include.messages": "a dead letter has the record; no log has it",
    "errors.deadletterqueue.topic.replication.factor": "dead letters are objects below _dead_letter/",
    "errors.deadletterqueue.context.headers.enable": "a dead letter always has the topic, the offset and the reason",
    "header.converter": "headers are stored as bytes; `source.headers` decodes them by name",
    "consumer.override.auto.offset.reset": "a partition without an offset starts at its first record, so that none "
    "is lost",
    "offset.flush.interval.ms": "a run moves the group once, after its commit",
    "confluent.topic.*": "of Confluent's licence",
    "confluent.license": "of Confluent's licence",
    "auto.offset.reset": "no key of Kafka Connect: no effect there either",
    "internal.key.converter*": "of the worker: no effect in a connector",
    "internal.value.converter*": "of the worker: no effect in a connector",
}
_LACKS = {
    "transforms.*": "no effect: `transforms` does not name it",
    "predicates.*": "no effect: no transform has it",
    "predicates": "see the transforms that have them",
    "transforms": "none is named",
    "consumer.override.*": "give it in the Kafka connection, if librdkafka has it",
    "key.converter.*": "the decoder has no such option",
    "value.converter.*": "the decoder has no such option",
    "header.converter.*": "headers are stored as bytes",
    "interceptor.classes": "no code of Kafka's clients runs here",
}
_CONVERTERS = {
    "org.apache.kafka.connect.converters.ByteArrayConverter": "bytes",
    "org.apache.kafka.connect.storage.StringConverter": "string",
    "org.apache.kafka.connect.json.JsonConverter": "json",
    "io.confluent.connect.avro.AvroConverter": "avro",
    "io.confluent.connect.protobuf.ProtobufConverter": "protobuf",
    "io.confluent.connect.json.JsonSchemaConverter": "json_schema",
}
FRAMED = ("avro", "protobuf", "json_schema")
# What they decode has columns.
TYPED = (*FRAMED, "string")
# Avro and Parquet files have the columns that the converter makes of a schema, and it makes some of other types.
OTHER_COLUMNS: dict[str, tuple[Kind, str]] = {
    "avro": (
        "differs",
        "columns have the types of the schema; the connector knows no timestamp-micros, time-micros, local times and "
        "uuid (numbers and text there), and makes text of enums, bytes of fixed, and in Parquet groups member0, "
        "member1 of unions",
    ),
    "protobuf": (
        "decide",
        "some columns are others: there, a oneof is a group with its fields (`event_0`), a wrapper a group with "
        "`value`, and a Timestamp has milliseconds; here, the fields of a oneof stand alone, a wrapper is its value or "
        "null, and a Timestamp has microseconds",
    ),
    "json_schema": (
        "decide",
        "some columns are others: there, `number` is a double, date-time, date and time are text, and oneOf is a "
        "group; here, `number` keeps its digits as text (`format: double` makes a double), the others are times, and "
        "alternatives share columns",
    ),
}
NO_CONVERTER = (
    "the file has no value.converter, so the connector took its worker's: name the worker's configuration with "
    "--worker FILE"
)
REGISTRY = "schema_registry_default"
# The rule of `source.start: group:…`, for the notes of each tool.
RULE = (
    "the first plan starts at this group's committed offsets. A partition without one starts at its first record. The "
    "plan is refused while the group has members: stop the old tool first"
)


class DecodeChoice(NamedTuple):
    """The decoding of keys or values. `is_declared`: the file says so; else its worker does.

    `inside`: what stands before the path of a field: `payload.` in the envelope of JsonConverter.
    """

    decode: str
    is_declared: bool
    inside: str = ""


def converter(keys: Keys, column: str, used: bool = True) -> DecodeChoice:
    """The decoder in the place of a converter.

    :param column: key or value.
    :param used: whether the archive needs this column decoded.
    """
    key = f"{column}.converter"
    if key not in keys:
        for name in keys.starting(f"{key}."):
            keys.differs(
                name, f"no effect there: without {key} the connector takes its worker's, with the worker's options"
            )
        return DecodeChoice("bytes", is_declared=False)
    if not used:
        for name in keys.starting(key):
            keys.differs(name, f"the {column}s need no decoder: nothing is filed by them or stored as their columns")
        return DecodeChoice("bytes", is_declared=True)
    decode = _CONVERTERS.get(keys.get(key))
    if decode is None:
        keys.decide(key, f"no decoder does what this class does; the {column}s are taken as bytes")
        for name in keys.starting(f"{key}."):
            keys.lacks(name, f"see {key}")
        return DecodeChoice("bytes", is_declared=True)
    keys.kept(key, f"source.{column}.decode: {decode}")
    envelope = f"{key}.schemas.enable"
    if decode != "json" or not keys.flag(envelope, True):
        keys.kept(envelope, "JSON is stored as it is")
        return DecodeChoice(decode, is_declared=True)
    text = (
        f"the {column}s are {{schema, payload}}, and are stored so; the connector stored the payload. Paths of fields "
        f"begin with `payload.`: correct them if the {column}s have no such envelope"
    )
    keys.decide(envelope, text)
    if envelope not in keys:
        keys.remark("decide", f"{envelope} is true by default: {text}")
    return DecodeChoice(decode, is_declared=True, inside="payload.")


def registry(keys: Keys, columns: dict[str, DecodeChoice]) -> str | dict[str, str] | None:
    """The schema registry, if a decoder needs it."""
    needs = [column for column, address in columns.items() if address.decode in FRAMED]
    address: str | dict[str, str] | None = REGISTRY if needs else None
    for column in columns:
        prefix = f"{column}.converter."
        key = f"{prefix}schema.registry.url"
        urls = words(keys.get(key))
        secret = keys.starting(f"{prefix}basic.auth.", f"{prefix}schema.registry.ssl.", f"{prefix}bearer.auth.")
        for name in secret:
            keys.by_hand(name, f"into the Airflow connection {REGISTRY} (type http)")
        if column in needs and urls and is_plain_address(urls[0]) and not secret:
            address = {"url": urls[0]}
            keys.kept(key, "source.registry" + (" (the first address only)" if urls[1:] else ""))
        else:
            keys.by_hand(key, f"into the Airflow connection {REGISTRY} (type http)")
        strategy = f"{prefix}{column}.subject.name.strategy"
        if keys.get(strategy).endswith(".TopicNameStrategy"):
            keys.kept(strategy, f"source.{column}.subject: topic, the default")
        keys.decide(strategy, f"write `source.{column}.subject` and `subjects`, which lists the records' names")
    return address


def source(keys: Keys, columns: dict[str, DecodeChoice], group_prefix: str = "connect-") -> dict[str, Any]:
    """The section `source`, with the start at the old group's offsets. `group_prefix`: see `start`."""
    keys.table("differs", _DIFFERS)
    section: dict[str, Any] = {}
    if "topics.regex" in keys:
        section["pattern"] = keys.get("topics.regex")
        keys.kept("topics.regex", "source.pattern (whole names, by Python's regular expressions)")
        keys.kept("topics", "no effect with `topics.regex`")
    else:
        section["topics"] = words(keys.get("topics"))
        keys.kept("topics", "source.topics")
    section |= start(keys, group_prefix)
    if isolation := keys.get("consumer.override.isolation.level"):
        section["isolation"] = isolation
        keys.kept("consumer.override.isolation.level", "source.isolation")
    elif group_prefix:
        keys.remark(
            "differs",
            "source.isolation is read_committed; a consumer of Kafka Connect reads records of aborted transactions, "
            "too, unless its worker or consumer.override.isolation.level says otherwise",
        )
    for column, decoded in columns.items():
        if decoded.decode != "bytes":
            section[column] = {"decode": decoded.decode}
    if address := registry(keys, columns):
        section["registry"] = address
    keys.table("lacks", _LACKS)
    return section


def start(keys: Keys, prefix: str = "connect-") -> dict[str, Any]:
    """Return `start` at the offsets of the connector's group; nothing if the file does not tell the group.

    :param prefix: what stands before the connector's name in the name of its group; empty: nothing is known of it.
    """
    own = "consumer.override.group.id"
    name = keys.get("name")
    group = keys.group or keys.get(own) or (f"{prefix}{name}" if name and prefix else "")
    keys.kept(own, "source.start")
    keys.kept("name", f"the archive's name; source.start: {RULE}" if group else "the archive's name")
    if group:
        return {"start": f"{GROUP}{group}"}
    keys.remark(
        "decide",
        "the connector's group is not known from the file: say it with --group, or the archive begins at the first "
        "record, also with what the connector has stored",
    )
    return {}


def bad_records(keys: Keys) -> str | None:
    """`policies.bad_record`, as `errors.*` says it."""
    topic = "errors.deadletterqueue.topic.name"
    if keys.get(topic):
        keys.differs(topic, "policies.bad_record: dead_letter; dead letters are objects below _dead_letter/")
        keys.kept("errors.tolerance", "policies.bad_record: dead_letter")
        return "dead_letter"
    if keys.get("errors.tolerance") == "all":
        keys.kept("errors.tolerance", "policies.bad_record: skip; the account counts each of them")
        return "skip"
    keys.kept("errors.tolerance", "policies.bad_record: fail")
    keys.kept(topic, "none")
    return None

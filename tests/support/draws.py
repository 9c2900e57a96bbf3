"""Strategies of the model test: records, policies, settings, and how attempts end."""

from typing import Any

from hypothesis import strategies as st

from kafka_archiver.values.intervals import from_ms
from tests.support.outcomes import SCHEMA, STEPS
from tests.support.sql_meanings import SELECTS, TIME, WHERES
from tests.support.topics import DAY, HOUR

# A section of the YAML, and its keys.
Change = dict[str, Any]
MINUTE = 60_000
YEAR_9999 = 253_402_300_799_999
YEAR_2090 = 3_786_912_000_000
# Absolute times; others are relative to the start of the current hour.
TIMES_OF_DAY = {"1970": 1, "2090": YEAR_2090, "9999": YEAR_9999}
POLICY_NAMES = ("lost_offsets", "recreated_topic", "missing_group", "moved_group", "bad_record")
ALL_GOES = "record_loss new_generation resume_from_ledger follow_ledger dead_letter"
# One word for each policy, in the order of their names.
POLICIES = st.tuples(
    st.sampled_from(["record_loss", "fail"]),
    st.sampled_from(["new_generation", "fail"]),
    st.sampled_from(["resume_from_ledger", "fail"]),
    st.sampled_from(["follow_ledger", "new_generation", "fail"]),
    st.sampled_from(["dead_letter", "skip", "fail"]),
).map(" ".join)
FORMATS_WRITTEN: list[dict[str, Any]] = [
    {"format": "jsonl", "codec": "none", "content": "record"},
    {"format": "jsonl", "codec": "none", "content": "value"},
    {"format": "jsonl", "codec": "gzip", "content": "record"},
    {"format": "jsonl", "codec": "zstd", "content": "value"},
    {"format": "avro", "codec": "none", "content": "record"},
    {"format": "parquet", "codec": "none", "content": "record"},
    {"format": "csv", "codec": "none", "content": "record"},
    {"format": "csv", "codec": "gzip", "content": "value"},
    {"format": "text", "codec": "zstd", "content": "value"},
    {"format": "bytes", "codec": "none", "content": "value", "options": {"framing": "length"}},
    {"format": "block_gzip", "codec": "gzip", "content": "value"},
    {"format": "block_gzip", "codec": "gzip", "content": "record"},
    {"format": "mak", "codec": "none", "content": "record"},
    {"format": "mak", "codec": "gzip", "content": "record", "options": {"version": 2}},
]
FORMATS = st.sampled_from(FORMATS_WRITTEN)
# What can hold every value.
MENDED = [
    {"format": "jsonl", "codec": "none", "content": "record"},
    {"format": "parquet", "codec": "none", "content": "record", "chunk_records": 4},
]
ENCRYPTED = {"client": {"connection": "master_key"}}
# A name that no column of the values has.
GROUP = {"field": "value.g", "as": "k"}
# outcomes._folder says where their objects are.
LAYOUTS = st.sampled_from(
    [
        *["hourly"] * 2,
        "daily",
        "topic_partition",
        {"offsets": 3},
        {"fields": ["key"], "missing": "null"},
        {"path": "{topic}/p{partition}/{HH}-{mm}", "timezone": "Asia/Kathmandu", "missing": "null"},
        "lenses",
        "deviantart",
        "zooz",
        "confluent_default",
        "confluent_daily",
        "confluent_hourly",
        {"name": "confluent_time", "path_format": "'year'=YYYY/MM/'hour'=HH"},
        {"name": "confluent_field", "fields": [GROUP], "missing": "null"},
        {"fields": [GROUP, "header.h"], "missing": "null"},
        {"fields": [GROUP]},
        {"fields": ["key"], "missing": "skip"},
        {"fields": [{"field": "key", "as": "k", "buckets": 2}], "missing": "null"},
        {"name": "lenses_keys_and_values", "fields": [GROUP, "key"], "missing": "skip"},
        {"name": "lenses_values", "fields": ["header.h"], "missing": "null"},
    ]
)
TIMES_WRITTEN: list[dict[str, Any]] = [
    {},
    {"from": "wallclock"},
    {"from": "header", "header": "t", "unit": "ms", "missing": "record"},
    {"from": "header", "header": "t", "unit": "ms", "missing": "skip"},
    {"from": "value", "path": "t", "unit": "ms", "missing": "null"},
    {"from": "value", "path": "t", "unit": "ms"},
]
TIMESTAMPS = st.sampled_from([*[{}] * 3, *TIMES_WRITTEN])
TRANSFORMS_WRITTEN: list[dict[str, Any]] = [
    {},
    {"mapper": "tests.support.mapped:split"},
    {"mapper": {"function": "tests.support.mapped:split_later", "concurrency": 3}},
    {"steps": STEPS},
]
TRANSFORMS = st.sampled_from([{}, *TRANSFORMS_WRITTEN])
# With Spark.
SQL = st.one_of(
    TRANSFORMS,
    st.fixed_dictionaries(
        {"where": st.sampled_from([*WHERES])}, optional={"select": st.sampled_from([*SELECTS]).map(list)}
    ),
    st.fixed_dictionaries({"select": st.sampled_from([*SELECTS]).map(list)}),
    st.fixed_dictionaries(
        {"where": st.sampled_from([*WHERES]), "mapper": st.just("tests.support.mapped:split")},
    ),
    st.fixed_dictionaries({"where": st.sampled_from([*WHERES]), "steps": st.just(STEPS)}),
)
SQL_TIMES = st.sampled_from(
    [
        *[{}] * 4,
        *({"from": "sql", "sql": TIME, "missing": missing} for missing in ("record", "skip", "null", "bad_record")),
    ]
)
STORE = st.builds(
    lambda f, n, layout, encryption: {**f, "chunk_records": n, "layout": layout, "encryption": encryption},
    FORMATS,
    st.sampled_from([3, 1, 2, 5, 100]),
    LAYOUTS,
    st.sampled_from(["none", "none", ENCRYPTED]),
)


def fitting(store: dict[str, Any], value: dict[str, Any], timestamp: Any, transform: Any) -> dict[str, Any]:
    """The sections of a YAML, with what they need of each other: a decoder for fields, columns for steps."""
    has_columns = transform.keys() & {"steps", "select"}
    if has_columns and store["format"] not in ("jsonl", "csv", "avro", "parquet"):
        transform, has_columns = {}, set()
    if has_columns:
        store, value = {**store, "content": "value"}, {"decode": "json", "schema": SCHEMA}
    elif timestamp.get("from") == "value" or "value." in f"{store.get('layout')} {transform} {timestamp}":
        value = {"decode": "json"}
    return {"store": store, "value": value, "timestamp": timestamp, "transform": transform}


SOURCE = st.fixed_dictionaries(
    {
        "start": st.sampled_from(["earliest", "earliest", "latest", from_ms(DAY - HOUR).isoformat()]),
        "isolation": st.sampled_from(["read_committed", "read_committed", "read_uncommitted"]),
        "max_records_per_run": st.sampled_from([1000, 1000, 7]),
        "value": st.sampled_from([{"decode": "bytes"}, {"decode": "json"}]),
    }
)
KEYS = st.sampled_from([None, b"a", b"b"])
VALUES = st.sampled_from(["good", "good", "good", "two lines", "bad", "deadly", None])
TIMES = st.one_of(
    st.integers(-3 * 4, 4).map(lambda quarter: quarter * HOUR // 4),
    # Seconds around both ends of the hour.
    st.integers(-5000, 5000),
    st.integers(HOUR - 5000, HOUR + 5000),
    st.sampled_from([0, -1, -HOUR, HOUR, 55 * MINUTE, HOUR + 55 * MINUTE, "1970", "2090", "9999"]),
)
RECORDS = st.lists(st.tuples(st.integers(0, 2), TIMES, KEYS, VALUES), min_size=1, max_size=5)
# Minutes by which a planner's clock is ahead.
SKEWS = st.sampled_from([0, 0, 0, 0, 0, -9, -1, 1, 9])
# How many deadly records each attempt dies on, in turns: a crash may not repeat, and a search may not end.
CRASHES = st.lists(st.sampled_from([0, 0, 1, 9]), min_size=1, max_size=4)
# Changes of an archive: keys of the YAML's sections; and of its topics, or of the code of its mapper.
CHANGES: tuple[Change, ...] = (
    *({"policies": {"bad_record": choice}} for choice in ("skip", "dead_letter", "fail")),
    *({"policies": {"lost_offsets": choice}} for choice in ("record_loss", "fail")),
    *({"policies": {"null_value": choice}} for choice in ("skip", "archive")),
    *({"policies": {"changed_code": choice}} for choice in ("plan_anew", "fail")),
    *({"source": {"start": start}} for start in ("earliest", "latest", from_ms(DAY).isoformat())),
    *({"source": {"isolation": isolation}} for isolation in ("read_committed", "read_uncommitted")),
    *({"source": {"value": {"decode": decode}}} for decode in ("bytes", "json")),
    *({"source": {"max_records_per_run": most}} for most in (3, 1000)),
    *({"source": {"max_value_bytes": most}} for most in (10, None)),
    {"source": {"group": "another"}},
    *({"store": {"options": {}, **written}} for written in FORMATS_WRITTEN),
    *({"store": {"chunk_records": most}} for most in (1, 2, 100)),
    *({"store": {"layout": layout}} for layout in ("hourly", "daily", {"fields": ["key"], "missing": "skip"})),
    *({"store": {"encryption": encryption}} for encryption in ("none", ENCRYPTED)),
    *({"timestamp": time} for time in TIMES_WRITTEN),
    *({"transform": transform} for transform in TRANSFORMS_WRITTEN),
    *({"topics": numbers} for numbers in ((0,), (1,), ())),
    {"code": "new"},
)
# What happens to each attempt, and before which of its calls. A change: it falls asleep, and the YAML changes.
FATES = st.lists(
    st.tuples(
        st.one_of(
            st.sampled_from(
                ["kill", "freeze"] * 3
                + ["freeze", "refuse", "forget", "compact", "retention", "produce", "recreate", "elect"]
            ),
            st.sampled_from(CHANGES),
        ),
        st.one_of(st.integers(0, 40), st.integers(0, 150)),
    ),
    max_size=2,
)

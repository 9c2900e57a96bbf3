"""Strategies of the model test: records, policies, settings, and how attempts end."""

from hypothesis import strategies as st

from kafka_archiver.intervals import from_ms
from tests.support.topics import DAY, HOUR

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
FORMATS = st.sampled_from(
    [
        {"format": "jsonl", "codec": "none", "content": "record"},
        {"format": "jsonl", "codec": "none", "content": "value"},
        {"format": "jsonl", "codec": "gzip", "content": "record"},
        {"format": "jsonl", "codec": "zstd", "content": "value"},
        {"format": "avro", "codec": "none", "content": "record"},
        {"format": "parquet", "codec": "none", "content": "record"},
    ]
)
# What can hold every value.
MENDED = [
    {"format": "jsonl", "codec": "none", "content": "record"},
    {"format": "parquet", "codec": "none", "content": "record", "chunk_records": 4},
]
# stored.key_of says where their objects are.
LAYOUTS = st.sampled_from(
    [
        *["hourly"] * 5,
        "daily",
        "topic_partition",
        {"offsets": 3},
        {"fields": ["key"], "missing": "null"},
        {"path": "{topic}/p{partition}/{HH}-{mm}", "timezone": "Asia/Kathmandu", "missing": "null"},
        "lenses",
        "deviantart",
    ]
)
STORE = st.builds(
    lambda f, n, layout: {**f, "chunk_records": n, "layout": layout},
    FORMATS,
    st.sampled_from([3, 1, 2, 5, 100]),
    LAYOUTS,
)
SOURCE = st.fixed_dictionaries(
    {
        "start": st.sampled_from(["earliest", "earliest", "latest", from_ms(DAY - HOUR).isoformat()]),
        "isolation": st.sampled_from(["read_committed", "read_committed", "read_uncommitted"]),
        "max_records_per_run": st.sampled_from([1000, 1000, 7]),
        "value": st.sampled_from([{"decode": "bytes"}, {"decode": "json"}]),
    }
)
KEYS = st.sampled_from([None, b"a", b"b"])
VALUES = st.sampled_from(["good", "good", "good", "two lines", "bad", None])
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
# What happens to each attempt, and before which of its calls.
FATES = st.lists(
    st.tuples(
        st.sampled_from(["kill"] * 3 + ["freeze"] * 4 + ["compact", "retention", "produce", "recreate"]),
        st.one_of(st.integers(0, 40), st.integers(0, 150)),
    ),
    max_size=2,
)

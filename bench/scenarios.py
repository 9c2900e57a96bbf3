"""The scenarios to measure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Records of `size` bytes with timestamps in `hours` hours; several hours are interleaved.

    :param skewed: nine of ten records are in one partition.
    :param usual: it runs if no scenario is named.
    :param store: keys of the archive's section `store`. :param transform: those of its section `transform`.
    """

    size: int = 1200
    hours: int = 1
    partitions: int = 4
    skewed: bool = False
    usual: bool = True
    store: Mapping[str, str | int] = field(default_factory=dict)
    transform: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)

    def topic(self, number: int) -> str:
        """The topic; its name has everything that the records depend on."""
        return f"bench-{self.size}b-{self.hours}h-{self.partitions}p{'-skewed' * self.skewed}-{number}"


SCENARIOS: Mapping[str, Scenario] = {
    "1200 B": Scenario(),
    "140 B": Scenario(size=140),
    "48 hours": Scenario(hours=48),
    # Small chunks, so that two workers share the partition.
    "skew": Scenario(skewed=True, store={"chunk_records": 100_000}),
    "500 partitions": Scenario(size=140, partitions=500),
    # Not for the CPU a record, but for what each chunk and each partition costs in time and memory: seven minutes.
    "5000 partitions": Scenario(size=140, partitions=5000, usual=False),
    # Each keeps all records: the price beside "1200 B", which has no transform.
    "where": Scenario(transform={"where": "NOT contains(cast(value AS string), 'no value has these words')"}),
    "mapper": Scenario(transform={"mapper": "bench.mappers:by_record"}),
    "mapper by batch": Scenario(transform={"mapper": {"function": "bench.mappers:by_batch", "by": "batch"}}),
    "jsonl.zst": Scenario(store={"codec": "zstd"}),
    "avro": Scenario(store={"format": "avro", "content": "record"}),
    "parquet": Scenario(store={"format": "parquet", "content": "record", "codec": "zstd"}),
}

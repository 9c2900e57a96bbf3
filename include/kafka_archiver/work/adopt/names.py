"""The keys of other tools: topic, partition and offset of an object. Pure, one parser for each tool.

Confluent: <topic>/<folders>/<topic>+<partition>+<first offset>.<extension>
Lenses: <topic>/<partition>/<last offset>_<earliest>_<latest>.<extension>, or with PARTITIONBY
    <folders>/<topic>(<partition>_<last offset>).<extension>
DeviantArt: <day>/<topic>-<partition, 5 digits>-<number, 12 digits>.gz, beside it ….index.json
kafkatos3: <topic>/<partition>/<topic>-<partition>_<first>-<last>_<yymmdd>.mak.gz
Zooz: <folders>/<partition>_<first offset>.<extension>
"""

import re
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from kafka_archiver.model.adopted import Tool


class Named(NamedTuple):
    """The facts in a key.

    :ivar number: the offset of the row `of`; None: the records have their offsets.
    :ivar chain: objects of a partition with the same chain follow each other; files of other ends are another writer's.
    :ivar counts: lines or rows are records, without doubt: a value with a line break is still one.
    :ivar index_key: the key of the index beside it.
    :ivar envelope: the tool may have put records into its envelope.
    """

    topic: str
    partition: int
    number: int | None
    of: Literal["first", "last"]
    chain: str
    format: str
    codec: str
    counts: bool = True
    min_timestamp: int | None = None
    max_timestamp: int | None = None
    index_key: str | None = None
    envelope: bool = False


class Ignored(NamedTuple):
    """A key that is not adopted, and why."""

    reason: str


Parsed = Named | Ignored
NOT_OF_THE_TOOL = Ignored("the name is none of this tool's")
_INDEX = Ignored("an index of the tool, not of records")
_NO_READER = "no reader of files that end in {}"
_NO_NUMBERS = Ignored("Kafka has no such partition, offset or time as the numbers in its name")
_NO_TOPIC = Ignored("Kafka has no topic of the name in its key")
_TOPIC = re.compile(r"(?!\.\.?$)[a-zA-Z0-9._-]{1,249}")
# The most that Kafka has of each.
_LAST_PARTITION, _LAST_OFFSET, _LAST_TIME = 2**31 - 1, 2**63 - 2, 2**63 - 1
_PARTS = Ignored("keys or headers in a file of their own: they cannot be joined with their values")

_CONFLUENT = re.compile(
    r"(?:.*/)?(?P<topic>[^/+]+)\+(?P<partition>\d{1,10})\+(?P<first>\d{1,19})(?P<part>\.(?:keys|headers))?(?P<end>\.[^/]+)"
)
_CONFLUENT_ENDS = {
    ".avro": ("avro", "none", True),
    ".json": ("lines", "none", True),
    ".json.gz": ("lines", "gzip", True),
    # A value may have the separator, too.
    ".bin": ("lines", "none", False),
    ".bin.gz": ("lines", "gzip", False),
}
_LENSES = re.compile(
    r"(?:.*/)?(?P<topic>[^/]+)/(?P<partition>\d{1,10})/(?P<last>\d{1,40})(?:_(?P<min>-?\d{1,19})_(?P<max>-?\d{1,19}))?"
    r"(?P<suffix>[^/.]*)\.(?P<end>[^/.]+)"
)
_LENSES_BY = re.compile(
    r"(?:.*/)?(?P<topic>[^/(]+)\((?P<partition>\d{1,10})_(?P<last>\d{1,40})\)(?P<suffix>[^/.]*)\.(?P<end>[^/.]+)"
)
_LENSES_ENDS = {
    "json": ("lines", "none", True),
    "gz": ("lines", "gzip", True),
    "avro": ("avro", "none", True),
    "parquet": ("parquet", "none", True),
    "text": ("lines", "none", False),
    "bytes": ("joined", "none", False),
}
_DEVIANTART = re.compile(r"(?:.*/)?(?P<topic>[^/]+)-(?P<partition>\d{5,10})-(?P<first>\d{12,19})\.gz")
_KAFKATOS3 = re.compile(
    r"(?:.*/)?(?P<topic>[^/]+)-(?P<partition>\d{1,10})_(?P<first>\d+)-(?P<last>\d+)_\d{6}\.mak(?P<gz>\.gz)?"
)
_ZOOZ = re.compile(
    r"(?:.*/)?(?P<partition>\d{1,10})_(?P<first>\d{1,19})\.(?P<end>[^/.]+)(?:\.(?P<codec>gz|bz2|sz|lz4))?"
)
_ZOOZ_CODECS = {None: "none", "gz": "gzip", "bz2": "bzip2", "sz": "snappy", "lz4": "lz4"}


def _folder(key: str) -> str:
    return key.rpartition("/")[0]


def _confluent(key: str, _topic: str | None) -> Parsed:
    match = _CONFLUENT.fullmatch(key)
    if match is None:
        return NOT_OF_THE_TOOL
    if match["part"]:
        return _PARTS
    form = ("parquet", "none", True) if match["end"].endswith(".parquet") else _CONFLUENT_ENDS.get(match["end"])
    if form is None:
        return Ignored(_NO_READER.format(match["end"]))
    name, codec, counts = form
    place = match["topic"], int(match["partition"]), int(match["first"])
    return Named(*place, "first", f"{_folder(key)} {match['end']}", name, codec, counts)


def _lenses(key: str, _topic: str | None) -> Parsed:
    if ".indexes/" in key:
        return _INDEX
    match = _LENSES.fullmatch(key) or _LENSES_BY.fullmatch(key)
    if match is None:
        return NOT_OF_THE_TOOL
    if match["end"] not in _LENSES_ENDS:
        return Ignored(_NO_READER.format(f".{match['end']}"))
    name, codec, counts = _LENSES_ENDS[match["end"]]
    groups = match.groupdict()
    low, high = (int(groups[bound]) if groups.get(bound) else None for bound in ("min", "max"))
    # Files of another suffix are those of another connector.
    chain = f"{_folder(key)} {match['suffix']}.{match['end']}"
    place = match["topic"], int(match["partition"]), int(match["last"])
    return Named(*place, "last", chain, name, codec, counts, low, high, envelope=True)


def _deviantart(key: str, _topic: str | None) -> Parsed:
    if key.endswith(".index.json") or key.rpartition("/")[2].startswith("last_chunk_index."):
        return _INDEX
    match = _DEVIANTART.fullmatch(key)
    if match is None:
        return NOT_OF_THE_TOOL
    # The day is that of the upload: a partition's files are one chain. A value may have line breaks; the index has the
    # number of records.
    place = match["topic"], int(match["partition"]), int(match["first"])
    return Named(*place, "first", "", "lines", "gzip", index_key=f"{key.removesuffix('.gz')}.index.json")


def _kafkatos3(key: str, _topic: str | None) -> Parsed:
    match = _KAFKATOS3.fullmatch(key)
    if match is None:
        return NOT_OF_THE_TOOL
    codec = "gzip" if match["gz"] else "none"
    return Named(match["topic"], int(match["partition"]), None, "first", "", "mak", codec)


def _zooz(key: str, topic: str | None) -> Parsed:
    match = _ZOOZ.fullmatch(key)
    if match is None or topic is None:
        return NOT_OF_THE_TOOL
    place = topic, int(match["partition"]), int(match["first"])
    chain = f"{_folder(key)} {match['end']}.{match['codec']}"
    return Named(*place, "first", chain, "lines", _ZOOZ_CODECS[match["codec"]], counts=False)


_PARSERS: Mapping[Tool, Callable[[str, str | None], Parsed]] = {
    "confluent": _confluent,
    "deviantart": _deviantart,
    "kafkatos3": _kafkatos3,
    "lenses": _lenses,
    "zooz": _zooz,
}


def parsed(tool: Tool, key: str, topic: str | None) -> Parsed:
    """Return the facts in a key of a tool, or why it is not adopted."""
    named = _PARSERS[tool](key, topic)
    if isinstance(named, Ignored):
        return named
    if not _TOPIC.fullmatch(named.topic):
        return _NO_TOPIC
    times = (named.min_timestamp or 0, named.max_timestamp or 0)
    is_possible = named.partition <= _LAST_PARTITION and (named.number or 0) <= _LAST_OFFSET
    return named if is_possible and max(map(abs, times)) <= _LAST_TIME else _NO_NUMBERS


EXPECTED: Mapping[Tool, str] = {
    "confluent": "<topic>/…/<topic>+<partition>+<offset>.avro|json|bin|parquet",
    "deviantart": "<day>/<topic>-<partition>-<number>.gz",
    "kafkatos3": "<topic>/<partition>/<topic>-<partition>_<first>-<last>_<yymmdd>.mak.gz",
    "lenses": "<topic>/<partition>/<offset>_<earliest>_<latest>.json|avro|…, or <topic>(<partition>_<offset>).json|…",
    "zooz": "…/<partition>_<offset>.json[.gz]",
}

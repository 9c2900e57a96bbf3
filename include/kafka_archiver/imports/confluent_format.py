"""The formats of Confluent's S3 sink as `store.format`, and what of their text is another one here."""

import re
from collections.abc import Mapping
from typing import Any

from kafka_archiver.imports import connect
from kafka_archiver.imports.base import Keys

FORMATS = {
    "io.confluent.connect.s3.format.avro.AvroFormat": "avro",
    "io.confluent.connect.s3.format.json.JsonFormat": "jsonl",
    "io.confluent.connect.s3.format.parquet.ParquetFormat": "parquet",
    "io.confluent.connect.s3.format.bytearray.ByteArrayFormat": "bytes",
}
_CODECS = {"avro": ("avro.codec", "null"), "parquet": ("parquet.codec", "snappy")}
_OURS = {"null": "none", "uncompressed": "none", "lz4_raw": "lz4"}
# The extensions of their files: of a format, or of a format and a codec.
_PARQUET = {"snappy": ".snappy.parquet", "gzip": ".gz.parquet", "zstd": ".zstd.parquet", "lz4": ".lz4raw.parquet"}
# What JsonFormat makes of values that other converters have read.
_AS_JSON = {
    "string": "the connector wrote each value as a JSON string in quotes; here it is the column `value` of an object",
    "bytes": "the connector wrote each value as base64 in quotes; here it is a line as Kafka has it",
    "json": "",
}
_TYPED_AS_JSON = (
    "the same fields, but some types are other text: the connector wrote timestamps as milliseconds, times and dates "
    "as numbers, and decimals as base64 (or as `json.decimal.format` says); here they are text, see «Types» in "
    "docs/howto/formats.md"
)


def format_of(keys: Keys, value: connect.DecodeChoice) -> dict[str, Any]:
    """Return what `store` says of the format, for values that are decoded so."""
    key = "format.class"
    form = FORMATS.get(keys.get(key))
    section: dict[str, Any] = {"format": form or "jsonl"}
    if form is None:
        text = "no format of this class; `jsonl` stands in its place, others are in docs/howto/formats.md"
        keys.decide(key, text) if key in keys else keys.remark("decide", f"the file has no {key}: {text}")
    else:
        keys.kept(key, f"store.format: {form}")
    codec_key, default = _CODECS.get(section["format"], ("s3.compression.type", "none"))
    codec = keys.get(codec_key, default).lower()
    section["codec"] = _OURS.get(codec, codec)
    keys.kept(codec_key, f"store.codec: {section['codec']}")
    for other in {"avro.codec", "parquet.codec", "s3.compression.type"} - {codec_key}:
        keys.note("kept", other, "no effect with this format, here as there")
    if form == "bytes":
        section |= _bytes(keys)
    for option in ("format.bytearray.extension", "format.bytearray.separator"):
        keys.kept(option, "store.options" if form == "bytes" else "no effect with this format, here as there")
    section |= stored_beside(keys, section["format"], value.decode)
    if form is not None:
        extensions(keys, form, section["codec"])
        same_text(keys, form, value)
    return section


def extensions(keys: Keys, form: str, codec: str) -> None:
    """Note the extension of the files, if it is another one here."""
    if form == "jsonl":
        ending = {"gzip": ".gz"}.get(codec, "")
        keys.remark("differs", f"objects end with .jsonl{ending}; the connector's with .json{ending}")
    elif form == "parquet" and codec in _PARQUET:
        keys.remark("differs", f"objects end with .parquet; the connector's with {_PARQUET[codec]}")


def same_text(keys: Keys, form: str, value: connect.DecodeChoice) -> None:
    """Note what is stored in another way than by the connector."""
    if form == "jsonl" and value.decode in connect.FRAMED:
        keys.remark("decide", _TYPED_AS_JSON)
    elif form == "jsonl" and _AS_JSON.get(value.decode):
        keys.remark("decide", _AS_JSON[value.decode])
    elif form == "jsonl" and not value.inside:
        keys.remark(
            "differs",
            "each value is stored as it was produced; the connector wrote the same JSON without spaces, with an "
            "object's fields in another order",
        )
    elif form in ("avro", "parquet") and value.decode in connect.OTHER_COLUMNS:
        keys.remark(*connect.OTHER_COLUMNS[value.decode])
    elif form in ("avro", "parquet"):
        keys.remark(
            "decide",
            f"the values have no schema that the archiver knows ({value.decode}), so {form} has the columns of Kafka's "
            "records, not those of the values: give `source.value.schema` and `store.content: value` for these",
        )


def stored_beside(keys: Keys, form: str, decode: str) -> dict[str, Any]:
    """Return `metadata` or `content` for keys and headers, which the connector stores in files of their own."""
    beside = [n for n in ("key", "headers") if keys.flag(f"store.kafka.{n if n == 'headers' else 'keys'}", False)]
    # Only decoded values have columns beside which Kafka's could be.
    columns = decode in connect.TYPED and form != "bytes"
    section: dict[str, Any] = {}
    if form == "bytes":
        for key in ("store.kafka.keys", "store.kafka.headers"):
            text = "the format bytes has values only; jsonl, avro and parquet with store.content: record have all"
            keys.decide(key, text) if keys.flag(key, False) else keys.kept(key, "not stored, here as there")
    elif beside and columns:
        section["metadata"] = beside
    elif beside or (form in ("avro", "parquet") and not columns):
        section["content"] = "record"
        if not beside:
            keys.remark(
                "differs", f"store.content: record, because {form} needs columns, and the values are not decoded"
            )
    where = "store.metadata: columns of the same object" if columns else "store.content: record, in the same object"
    for key, files in (("store.kafka.keys", ".keys"), ("store.kafka.headers", ".headers")):
        if keys.flag(key, False):
            keys.decide(key, f"{where}; the connector wrote files of their own beside it (…{files}.avro and so on), "
                             "and refused records without")  # fmt: skip
        keys.kept(key, "not stored, here as there")
    for key in ("keys.format.class", "headers.format.class"):
        keys.differs(key, "keys and headers are in the same object as the values")
    return section


def _bytes(keys: Keys) -> Mapping[str, Any]:
    options = {}
    extension = keys.get("format.bytearray.extension")
    if re.fullmatch(r"(\.[A-Za-z0-9_-]+)+", extension):
        options["extension"] = extension
    elif extension:
        keys.decide("format.bytearray.extension", "expected a dot, letters and digits; .bin stands in its place")
    # Their default is a line break. White space counts, and so does the empty text.
    options["separator"] = keys.raw("format.bytearray.separator", "\n")
    return {"options": options}

"""`store`: where and how objects are written."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from kafka_archiver.config.section import Section
from kafka_archiver.layouts.registry import LAYOUTS
from kafka_archiver.plan import METADATA, Content, Metadata
from kafka_archiver.properties import ConnectionOrProperties, Options, store_url, without_credentials

Name = Annotated[str, Field(min_length=1)]


def _layout(name: str) -> str:
    if name not in LAYOUTS:
        raise ValueError(f"expected {' | '.join(LAYOUTS)}")
    return name


def _in_order(names: tuple[Metadata, ...]) -> tuple[Metadata, ...]:
    if len(set(names)) != len(names):
        raise ValueError("expected each column only once")
    return tuple(name for name in METADATA if name in names)


def _to_distinct(names: dict[str, str]) -> dict[str, str]:
    if len({name.lower() for name in names.values()}) != len(names):
        raise ValueError("expected a different new name for each column, whatever the case of its letters")
    return names


class StoreSection(Section):
    """Where and how objects are written."""

    url: Annotated[str, BeforeValidator(store_url)]
    aws: Annotated[ConnectionOrProperties, BeforeValidator(without_credentials("endpoint_url", "http://host:port"))] = (
        "aws_default"
    )
    layout: Annotated[str, AfterValidator(_layout)] = "hourly"
    format: str = "jsonl"
    content: Content = "value"
    metadata: Annotated[tuple[Metadata, ...], AfterValidator(_in_order)] = ()
    # Letters, digits and _: Avro takes no other names.
    metadata_prefix: Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")] = ""
    rename: Annotated[dict[Name, Name], AfterValidator(_to_distinct)] = Field(default={})
    codec: str | None = None
    # The format's own options. `formats.resolve` checks them, because this module does not know the formats.
    options: Options = Field(default={})
    chunk_records: Annotated[int, Field(gt=0, le=100_000_000)] = 1_000_000
    part_bytes: Annotated[int, Field(ge=5 << 20, le=1 << 30)] = 8 << 20

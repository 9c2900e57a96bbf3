"""`source`: what is archived, and how it is read."""

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from kafka_archiver.config.section import Section
from kafka_archiver.documents import UtcTime
from kafka_archiver.plan import Decode, Isolation
from kafka_archiver.properties import ConnectionOrProperties, without_credentials


class ValueDecode(Section):
    """How the bytes of a value are read; `json` makes a value that is not one JSON document a bad record."""

    decode: Decode = "bytes"


class Source(Section):
    """What is archived, and how it is read."""

    kafka: ConnectionOrProperties = "kafka_default"
    topics: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    pattern: str | None = None
    group: str | None = None
    start: Literal["earliest", "latest"] | UtcTime = "earliest"
    isolation: Isolation = "read_committed"
    reader: Literal["auto", "spark", "native"] = "auto"
    # Seconds that planning waits for open transactions.
    settle: Annotated[float, Field(ge=0, le=3600)] = 30
    max_records_per_run: Annotated[int, Field(gt=0)] = 50_000_000
    max_value_bytes: Annotated[int, Field(gt=0)] | None = None
    value: ValueDecode = ValueDecode()
    registry: Annotated[
        ConnectionOrProperties | None, BeforeValidator(without_credentials("url", "https://registry:8081"))
    ] = None

    @property
    def wanted(self) -> tuple[str, ...] | re.Pattern[str]:
        """The topics' names, or the pattern that whole names have to match."""
        return re.compile(self.pattern) if self.pattern is not None else self.topics or ()

    @model_validator(mode="after")
    def _one_way_to_name_topics(self) -> Self:
        if (self.topics is None) == (self.pattern is None):
            raise ValueError("expected exactly one of `topics` (a list of names) and `pattern` (a regular expression)")
        if self.topics and len(set(self.topics)) != len(self.topics):
            raise ValueError("expected each topic only once in `topics`")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise ValueError(f"expected a regular expression in `pattern` ({error})") from error
        return self

"""The YAML of one archive, made of its sections."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, PrivateAttr, ValidationError, model_validator

from kafka_archiver.config.alerts import Alerts
from kafka_archiver.config.health import AuditSection, Health
from kafka_archiver.config.properties import (
    ConnectionId,
    KubernetesName,
    Properties,
    no_secret_arguments,
)
from kafka_archiver.config.section import Section, unknown_key
from kafka_archiver.config.source import Source
from kafka_archiver.config.store import StoreSection
from kafka_archiver.config.times import Schedule, Timestamp, Timezone, longest_interval
from kafka_archiver.config.transform import TransformSection
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.policies import PolicyChoices
from kafka_archiver.messages.yaml_faults import fault_lines
from kafka_archiver.model.layouts.registry import form_of, named, resolve
from kafka_archiver.model.layouts.tokens import Field as OfRecord
from kafka_archiver.model.settings import Evolution, Header, Settings


class Spark(Section):
    """The settings of the job's submission.

    `record_seconds`, `record_memory_bytes`: a record that exceeds one alone goes by `policies.bad_record`.
    """

    connection: ConnectionId = "spark_default"
    conf: Annotated[Properties, AfterValidator(no_secret_arguments)] = Field(default={})
    memory_bytes: Annotated[int, Field(ge=16 << 20)] = 128 << 20
    record_seconds: Annotated[int, Field(ge=0, le=86_400)] = 60
    record_memory_bytes: Annotated[int, Field(ge=0, le=1 << 50)] = 2 << 30
    history_url: Annotated[str, Field(pattern=r"^https?://[^@?#\s]+$")] | None = None
    kubernetes_secret: KubernetesName | None = None


class Policies(PolicyChoices, Section):
    """The archive's choices."""


class Archive(Section):
    """The YAML of one archive as a value."""

    archive: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=200)]
    description: Annotated[str, Field(max_length=10_000)] = ""
    owner: Annotated[str, Field(min_length=1, max_length=500)] = "airflow"
    # Airflow's limit.
    tags: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = ()
    schedule: Schedule = "0 * * * *"
    timezone: Timezone = "UTC"
    retries: Annotated[int, Field(ge=0, le=1000)] = 3
    source: Source
    timestamp: Timestamp = Timestamp()
    transform: TransformSection = TransformSection()
    store: StoreSection
    schema_evolution: Evolution = "NONE"
    policies: Policies = Policies()
    alerts: Alerts = Alerts()
    health: Health = Health()
    audit: AuditSection = AuditSection()
    spark: Spark = Spark()
    _file: str = PrivateAttr("")

    @property
    def file(self) -> str:
        """The file that declares it, for messages; empty if it is of no file."""
        return self._file

    def of_file(self, file: str) -> Self:
        """The archive as a file declares it."""
        self._file = file
        return self

    # The same archive, whatever file declares it.
    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(self.archive)

    @model_validator(mode="after")
    def _keeps_its_position_in_its_own_group(self) -> Self:
        if self.source.old_group == self.group:
            raise ValueError(
                f"another group than the archive's own ({self.group}) in `source.start`: an archive goes on at its own "
                "group's offsets anyway"
            )
        return self

    @model_validator(mode="after")
    def _stores_what_it_decodes(self) -> Self:
        content, metadata = self.store.content, self.store.metadata
        key = self.source.key
        # Such keys have no column, so objects need none.
        files = key.decoder.is_json and not key.has_schema() and self.settings.files_by("key")
        if content == "value" and key.decoder.decodes and "key" not in metadata and not files:
            raise ValueError(
                "`store.content: record` or both, or the key in `store.metadata`, for `source.key.decode`: the objects "
                "have no keys"
            )
        columns = self.source.value.decoder.has_columns or self.source.value.has_schema()
        if content == "value" and self.source.headers and not columns:
            raise ValueError(
                "`store.content: record` or both, or a value that is decoded to columns, for `source.headers`: the "
                "objects have no columns"
            )
        for column, decoding in self.source.decoded.items():
            needs_one_schema = self.schema_evolution != "NONE" or decoding.declared_schema
            if content != "record" and needs_one_schema and len(decoding.subjects) > 1:
                raise ValueError(
                    f"`schema_evolution: NONE` without a schema in the YAML, `store.content: record`, or only one of "
                    f"`source.{column}.subjects`: `{content}` stores the columns of one schema"
                )
        return self

    @model_validator(mode="after")
    def _files_by_what_it_has(self) -> Self:
        try:
            form = form_of(resolve(self.settings))
        except ConfigError as error:
            raise ValueError(str(error)) from None
        # S3's keys have 1,024 bytes; paths of values get 760, and 64 are for extensions.
        prefix = self.store.url.partition("://")[2].partition("/")[2]
        if any(isinstance(token, OfRecord) for token in form.folders) and len(prefix.encode()) > 200:
            raise ValueError("a prefix of at most 200 bytes in `store.url`: S3 takes keys of 1,024")
        return self

    def choosing(self, policies: Mapping[str, Any]) -> Self:
        """The archive with the policies of one DAG run.

        :raises ConfigError: a policy or choice does not exist.
        """
        try:
            chosen = type(self.policies).model_validate({**self.policies.model_dump(), **policies})
        except ValidationError as error:
            wrong = "; ".join(f"in the run's `policies`: {line}" for line in fault_lines(error, unknown_key))
            raise ConfigError(f"{wrong} (policies: {', '.join(type(self.policies).model_fields)})") from None
        return self.model_copy(update={"policies": chosen})

    @property
    def group(self) -> str:
        """The consumer group that holds the archive's position."""
        return self.source.group or f"archiver-{self.archive}"

    @property
    def audit_schedule(self) -> str | None:
        """The schedule of its audits; None: by hand only."""
        is_in_yaml = "schedule" in self.audit.model_fields_set
        return self.audit.schedule if self.schedule or is_in_yaml else None

    @property
    def max_audit_age(self) -> timedelta | None:
        """The most time since the last audit; longer than the default if the schedule of the audits is."""
        most = self.health.max_audit_age
        if most is None or self.audit_schedule is None or "max_audit_age" in self.health.model_fields_set:
            return most
        return max(most, 2 * longest_interval(self.audit_schedule))

    @property
    def has_columns(self) -> bool:
        """Return True if keys or values are decoded to columns."""
        return self.settings.has_columns or bool(self.source.with_schemas)

    @property
    def settings(self) -> Settings:
        """The settings that a plan freezes, before `formats.resolve` checks and completes them."""
        # Keys of the section `store` that are also settings.
        store = self.store.model_dump(include=set(Settings.model_fields) - {"encryption"}, exclude_none=True)
        layout, options = named(self.store.layout)
        return Settings(
            **{"codec": "", **store, "layout": layout, "layout_options": options},
            time=self.timestamp.event_time,
            isolation=self.source.isolation,
            value_decode=self.source.value.decode,
            key_decode=self.source.key.decode,
            headers=tuple(Header(name=name, decode=decoding.decode) for name, decoding in self.source.headers.items()),
            schema_id_headers=tuple(c for c, decoding in self.source.decoded.items() if decoding.schema_id == "header"),
            unknown=self.source.unknown,
            json_rules=2 if self.source.unknown else 1,
            codec_rules=2 if self.store.codec == "zstd" else 1,
            schema_evolution=self.schema_evolution,
            transform=self.transform.timed(self.timestamp.sql),
            encryption="client" if (client := self.store.encryption.client) and client.encrypt else None,
            null_value=self.policies.null_value,
            max_value_bytes=self.source.max_value_bytes,
        )

"""`spark`: how the job is submitted."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from kafka_archiver.config.properties import ConnectionId, Properties, kubernetes_name, no_secret_arguments
from kafka_archiver.config.section import Section


class Spark(Section):
    """The settings of the job's submission.

    `memory_bytes`: how much one task buffers before it spills to local disk. `record_seconds`,
    `record_memory_bytes`: how long decoders and mappers may take for a record, and how much memory; 0: no limit. A
    record that exceeds one alone goes by `policies.bad_record`. `kubernetes_secret`: the Secret from which the
    driver reads the endpoints on Kubernetes, in deploy mode `cluster`. `history_url`: the address of Spark's
    history server, for a button in Airflow's UI.
    """

    connection: ConnectionId = "spark_default"
    conf: Annotated[Properties, AfterValidator(no_secret_arguments)] = Field(default={})
    memory_bytes: Annotated[int, Field(ge=16 << 20)] = 128 << 20
    record_seconds: Annotated[int, Field(ge=0, le=86_400)] = 60
    record_memory_bytes: Annotated[int, Field(ge=0, le=1 << 50)] = 2 << 30
    history_url: Annotated[str, Field(pattern=r"^https?://[^@?#\s]+$")] | None = None
    kubernetes_secret: Annotated[str, BeforeValidator(kubernetes_name)] | None = None

"""`spark`: how the job is submitted."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from kafka_archiver.config.section import Section
from kafka_archiver.properties import ConnectionId, Properties, kubernetes_name, no_secret_arguments


class Spark(Section):
    """How the job is submitted.

    `memory_bytes` bounds what one task holds back before it spills to local disk. On Kubernetes, in deploy mode
    `cluster`, the driver has the endpoints from the Secret named `kubernetes_secret`.
    """

    connection: ConnectionId = "spark_default"
    conf: Annotated[Properties, AfterValidator(no_secret_arguments)] = Field(default={})
    memory_bytes: Annotated[int, Field(ge=16 << 20)] = 128 << 20
    kubernetes_secret: Annotated[str, BeforeValidator(kubernetes_name)] | None = None

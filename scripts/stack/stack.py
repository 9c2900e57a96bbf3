"""The four services of this checkout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scripts.stack.airflow import Airflow, AirflowPorts, Connection
from scripts.stack.choices import Choices
from scripts.stack.kafka import Kafka, KafkaPorts
from scripts.stack.paths import LOCAL
from scripts.stack.ports import fixed_ports
from scripts.stack.process import Service
from scripts.stack.registry import RegistryPorts, RegistryServer
from scripts.stack.s3 import S3, S3Ports


def connections(kafka: Kafka, s3: S3, registry: RegistryServer | None = None) -> list[Connection]:
    """Return the connections of an Airflow to these services."""
    extra = {"endpoint_url": s3.endpoint_url, "region_name": s3.region}
    registries = [Connection("schema_registry_default", "http", {}, host=registry.url)] if registry else []
    return [
        *registries,
        Connection("kafka_default", "kafka", {"bootstrap.servers": kafka.bootstrap_servers}),
        Connection("aws_default", "aws", extra, login=s3.owner.access_key, password=s3.owner.secret_key),
        Connection("spark_default", "spark", {"deploy-mode": "client"}, host="local[2]"),
    ]


@dataclass(frozen=True)
class Stack:
    kafka: Kafka
    s3: S3
    registry: RegistryServer
    airflow: Airflow

    @classmethod
    def of(cls, choices: Choices) -> Stack:
        offset = choices.port_offset
        kafka = Kafka(LOCAL / "kafka", fixed_ports(KafkaPorts, offset))
        s3 = S3(LOCAL / "s3", fixed_ports(S3Ports, offset))
        # Not LOCAL / "registry", which has the program.
        registry = RegistryServer(LOCAL / "schema-registry", fixed_ports(RegistryPorts, offset))
        ports, known = fixed_ports(AirflowPorts, offset), connections(kafka, s3, registry)
        return cls(kafka, s3, registry, Airflow(LOCAL / "airflow", ports, Path(choices.archives), known))

    @property
    def services(self) -> list[Service]:
        return [self.kafka, self.s3, self.registry, self.airflow]

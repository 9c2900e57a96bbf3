"""The entry point by which Airflow finds this provider.

Every Airflow process calls this while it starts, before its configuration is complete, and an exception here stops all
of them. So it imports nothing and computes nothing.
"""

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Return the provider's metadata, in the form of Airflow's provider_info.schema.json."""
    return {
        "package-name": "kafka-archiver",
        "name": "Kafka archiver",
        "description": "Archives Kafka topics to an object store, filed by hour, with a proof of completeness.",
        # Two entries: the second changes Airflow's own commands, and a failure there must not remove the first.
        "cli": [
            "kafka_archiver.orchestration.cli.commands.commands",
            "kafka_archiver.orchestration.backfill.command.extend_dags",
        ],
    }

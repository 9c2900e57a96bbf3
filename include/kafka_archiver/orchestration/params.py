"""What a person may tell a single DAG run: in the trigger form, or with `airflow dags trigger --conf`."""

from airflow.sdk import Param

from kafka_archiver.config import Archive, Policies


def params(archive: Archive) -> dict[str, Param]:
    """The parameters of an archive's DAG."""
    return {
        "max_records": Param(
            archive.source.max_records_per_run,
            type="integer",
            minimum=1,
            title="Records at most",
            description="How many records this run takes at most; the next run goes on where it stops. More than "
            "usual catches up faster after an outage. A backfill takes all of its interval.",
        ),
        "policies": Param(
            {},
            type="object",
            title="Policies of this run",
            description="What this run does about a strange state, where that is not what the archive's YAML says, "
            f'as in {{"lost_offsets": "record_loss"}}. There are {", ".join(Policies.model_fields)}.',
        ),
        "rebuild": Param(
            None,
            type=["null", "object"],
            title="Rebuild",
            description="Instead of archiving, read again from Kafka what is archived already and replace its "
            'objects: {"hour": "2026-11-21T05:00:00Z"} or {"run": "20261121T050000Z"}; with "keep": true the '
            "objects that are replaced stay in the store.",
        ),
    }

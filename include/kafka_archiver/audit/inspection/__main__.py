"""The audit without Airflow.

    python -m kafka_archiver.audit.inspection s3://bucket/prefix ARCHIVE [--deep]

Needs the store's URL and credentials with read access, as boto3 finds them: AWS_ACCESS_KEY_ID and so on, a profile or
the role of the machine; AWS_ENDPOINT_URL for a store that is not Amazon's. For SSE-C, and to read objects that were
encrypted before they were sent, KAFKA_ARCHIVER_ENDPOINTS: `{"kafka": {}, "store": {…}, "master_keys": {…}}`. Prints
the report as JSON. The exit code is 0 when the archive is clean, 1 when it is damaged or could not be audited.
"""

import argparse
import os
import sys
from datetime import UTC, datetime

from kafka_archiver.audit.inspection.step import audit
from kafka_archiver.config import Archive
from kafka_archiver.context.keyring import keyring_of
from kafka_archiver.jobs.endpoints import ENDPOINTS, Endpoints
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.model.object_keys import ledger_prefix
from kafka_archiver.store import open_store


def main() -> int:
    """Audit the archive of the command line. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kafka_archiver.audit.inspection", description=__doc__)
    parser.add_argument("store", help="store.url of the archive: s3://bucket/prefix")
    parser.add_argument("archive", help="the archive's name")
    parser.add_argument("--deep", action="store_true", help="also read every object")
    arguments = parser.parse_args()
    try:
        text = os.environ.get(ENDPOINTS)
        endpoints = Endpoints.from_json(text) if text else Endpoints({}, {})
        store = open_store(arguments.store, endpoints.store)
        if next(store.list(ledger_prefix(arguments.archive)), None) is None:
            where = ledger_prefix(arguments.archive)
            return _say(f"no archive {arguments.archive!r} in {store.url}: expected its ledger below {where}")
        # The ledger knows the archive's topics.
        archive = Archive.model_validate(
            {"archive": arguments.archive, "source": {"pattern": ".*"}, "store": {"url": arguments.store}}
        )
        report = audit(archive, store, datetime.now(UTC), arguments.deep, tell=_say, keyring=keyring_of(endpoints))
    except (ArchiverError, ValueError) as error:
        return _say(str(error))
    sys.stdout.write(report.to_json().decode())
    return 1 if report.damage or report.stops else 0


def _say(text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())

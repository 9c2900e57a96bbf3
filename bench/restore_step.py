"""One step of a restore in this process, as one Spark task after the other does it: `plan`, `write` or `verify`.

python -m bench.restore_step STEP ARCHIVE URL SOURCE TARGET; the endpoints are in the environment, as those of a job. It
prints its CPU seconds without start-up, and its peak memory, as JSON.
"""

import json
import os
import resource
import sys
import time

from kafka_archiver.jobs.endpoints import ENDPOINTS, Endpoints
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.model.restore import RestoreSelection
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.store import open_store
from kafka_archiver.work.restore.plan import plan_restore
from kafka_archiver.work.restore.step import (
    PartitionWork,
    frozen_plan,
    groups_of,
    publish,
    published,
    require_verified,
)


def main(step: str, archive: str, url: str, source: str, target: str) -> None:
    """Do the step for all target partitions."""
    endpoints = Endpoints.from_json(os.environ[ENDPOINTS])
    work = PartitionWork(archive, archive, url, endpoints.store, endpoints, frozenset())
    began, wall = time.process_time(), time.monotonic()
    if step == "plan":
        request = RestoreRequest(archive, RestoreSelection(topics=(source,)), {source: target})
        plan_restore(Ledger(open_store(url, dict(endpoints.store)), archive), Cluster(endpoints.kafka), request)
    else:
        plan = frozen_plan(work.ledger, archive)
        if step == "write":
            for group in groups_of(plan, 1):
                work.write(group, lambda: False)
        else:
            before = published(work.ledger, plan)
            results = [result for group in groups_of(plan, 1) for result in work.verify(group, lambda: False)]
            require_verified(publish(work.ledger, plan, results, before))
    usage = {"cpu": time.process_time() - began, "wall": time.monotonic() - wall}
    print(json.dumps(usage | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10}))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""One step in a process of its own, so that a test can kill it: python -m tests.support.step NAME ARCHIVE RUN…

NAME is plan (RUN is an interval as JSON then), rebuild, verify, commit or close_hours.

ARCHIVE is the archive as JSON; the endpoints are in KAFKA_ARCHIVER_ENDPOINTS, as for the Spark job.
"""

import json
import os
import sys

from kafka_archiver.config import Archive
from kafka_archiver.intervals import Interval
from kafka_archiver.job import ENDPOINTS, Endpoints
from kafka_archiver.steps.close_hours import close_hours
from kafka_archiver.steps.commit import commit
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.plan import plan
from kafka_archiver.steps.rebuild import rebuild_run
from kafka_archiver.steps.verify import verify

if __name__ == "__main__":
    name, archive, *runs = sys.argv[1:]
    endpoints = Endpoints.from_json(os.environ[ENDPOINTS])
    context = Context.open(Archive.model_validate(json.loads(archive)), endpoints)
    if name == "plan":
        plan(context, Interval.model_validate_json(runs[0]), "scheduled")
    elif name == "rebuild":
        rebuild_run(context, runs[0])
    elif name == "verify":
        verify(context, runs)
    elif name == "commit":
        commit(context, runs)
    else:
        close_hours(context, runs)

"""Does a job: `spark-submit archive.py DOCUMENT`, for example the archiving of planned runs.

DOCUMENT is the JSON of a document in kafka_archiver/jobs; it names its job. Addresses and credentials are in the
environment variable KAFKA_ARCHIVER_ENDPOINTS (JSON), never in an argument.
Exit codes: 0 done, 64 a retry would not help, 75 a retry may help, 1 unknown.
"""

import sys

from kafka_archiver.driver.main import run_program

if __name__ == "__main__":
    run_program(sys.argv[1:])

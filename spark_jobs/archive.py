"""Archive planned runs of one archive: spark-submit archive.py DOCUMENT

The document is that of kafka_archiver/job.py, as JSON. Addresses and credentials are in the environment variable
KAFKA_ARCHIVER_ENDPOINTS (JSON), never in an argument.
Exit codes: 0 done, 64 trying again is of no use, 75 trying again may help, 1 unknown.
"""

import gc
import sys

from kafka_archiver.driver.archive import main

if __name__ == "__main__":
    code = main(sys.argv[1:])
    # Else Python searches all that it holds for cycles before it ends: a tenth of a CPU second.
    gc.freeze()
    sys.exit(code)

"""The job's main program for several documents, one after the other in one JVM: a file with a document in each line.

Each document runs as spark_jobs/archive.py would run it. The exit codes go to the file `<documents>.codes`.
"""

import json
import sys
import time
from pathlib import Path

from kafka_archiver.driver.archive import main

if __name__ == "__main__":
    documents = Path(sys.argv[1])
    codes = []
    for document in documents.read_text().splitlines():
        began = time.monotonic()
        codes.append([main([document]), round(time.monotonic() - began, 2)])
    documents.with_suffix(".codes").write_text(json.dumps(codes))

"""The job's main program for several documents in one JVM: a file with JSON, a list of pairs (document, has SQL).

Each document runs as spark_jobs/archive.py would run it; those without SQL side by side, for they wait more than they
work, and SQL has one session. The exit codes go to the file `<documents>.codes`.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kafka_archiver.driver.main import main

THREADS = 4

if __name__ == "__main__":
    place = Path(sys.argv[1])
    documents = json.loads(place.read_text())
    with ThreadPoolExecutor(THREADS) as pool:
        beside = {document: pool.submit(main, [document]) for document, has_sql in documents if not has_sql}
    codes = [main([document]) if has_sql else beside[document].result() for document, has_sql in documents]
    place.with_suffix(".codes").write_text(json.dumps(codes))

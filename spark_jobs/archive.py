"""The job of a checkout: `spark-submit spark_jobs/archive.py DOCUMENT`. The package has the same program."""

import sys

from kafka_archiver.driver.main import run_program

if __name__ == "__main__":
    run_program(sys.argv[1:])

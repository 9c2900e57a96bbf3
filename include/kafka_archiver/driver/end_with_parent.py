"""Ends the driver when its spark-submit or its Airflow task was killed.

In client mode the Python driver is a child of the spark-submit JVM, which is a child of the Airflow task. Killing
either leaves the driver running. What the driver still writes is harmless, but it wastes the cluster.
"""

import os
import sys
import threading
from pathlib import Path

TASK_PID = "KAFKA_ARCHIVER_TASK_PID"
EXIT_CODE = 75
_SECONDS = 1.0


def _born(pid: int) -> str | None:
    """The kernel's start time of a process, which differs for a reused pid; None when the process is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = stat.rsplit(")", 1)[1].split()
    # Field 3 is the state, field 22 the start time. A zombie (Z) has ended.
    return None if fields[0] == "Z" else fields[19]


def watch() -> None:
    """From now on, end this process within two seconds when its parent or the Airflow task is gone."""
    parent = os.getppid()
    watched = {parent: _born(parent)}
    task = os.environ.get(TASK_PID, "")
    # In cluster mode the task is on another machine, and the variable is not set.
    if task.isdigit():
        watched[int(task)] = _born(int(task))

    def look() -> None:
        while True:
            gone = [pid for pid, born in watched.items() if born is None or _born(pid) != born]
            if os.getppid() != parent or gone:
                try:
                    sys.stderr.write("kafka-archiver: the process that started this job is gone: ending the job\n")
                    sys.stderr.flush()
                finally:
                    # Also if the write fails because stderr is closed.
                    os._exit(EXIT_CODE)
            threading.Event().wait(_SECONDS)

    threading.Thread(target=look, name="watchdog", daemon=True).start()

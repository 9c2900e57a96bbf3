"""A Spark standalone cluster of the bench's own, on which the job's tasks run in processes of their own."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from bench.services import HOME
from scripts.stack.process import end
from scripts.stack.spark_cluster import Master, Worker


@dataclass(frozen=True, slots=True)
class Cluster:
    """It runs. `pids`: the workers, which start the executors."""

    address: str
    pids: tuple[int, ...]

    @property
    def conf(self) -> Mapping[str, str]:
        """What spark-submit is told for a job that has it all."""
        return {
            "spark.executor.memory": "600m",
            "spark.cores.max": str(len(self.pids)),
            # Else it begins with the first executor.
            "spark.scheduler.minRegisteredResourcesRatio": "1",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        }


@contextmanager
def cluster(workers: int) -> Iterator[Cluster | None]:
    """A master and so many workers of one core, ended with all they have started; None for no worker.

    :raises StackError: one does not start.
    """
    if not workers:
        yield None
        return
    directory = HOME / "spark"
    master = Master(directory / "master")
    started = [Worker(directory / f"worker{number}", "UTC", master) for number in range(workers)]
    try:
        master.start()
        for worker in started:
            worker.start()
        yield Cluster(master.address, tuple(int(worker.pid_file.read_text()) for worker in started))
    finally:
        end(directory, grace=0)
        for service in (master, *started):
            service.stop(grace=0)
        shutil.rmtree(directory, ignore_errors=True)

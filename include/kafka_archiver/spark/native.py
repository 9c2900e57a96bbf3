"""The native reader as a Spark job: tasks of one large or many small chunks, whose records never cross the JVM."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

from pyspark import SparkContext

from kafka_archiver.kafka.reader import read_chunks
from kafka_archiver.plan import Chunk
from kafka_archiver.spark.reading import read_settings, whole_chunk
from kafka_archiver.spark.sink import Sink, results, unpacked
from kafka_archiver.store import open_store
from kafka_archiver.writer.commit import abort

# What a chunk costs beside its offsets, in offsets: the requests for its objects, however few the records.
CHUNK_COST = 2_000
# So much makes a task. A second Python worker costs a CPU second to start, as much as a hundred thousand records; but
# these may be large, so a few tasks for each core come first.
SMALLEST_TASK, LARGEST_TASK = 10_000, 100_000
TASKS_A_CORE = 8


def write_natively(
    context: SparkContext, chunks: Sequence[Chunk], properties: Mapping[str, str], sink: Sink
) -> list[bytes]:
    """Read and write the chunks. Returns what the sink returned for each, and of a task that failed its failure.

    :param chunks: each from where the log still has it.
    :param properties: librdkafka's client properties.
    """
    settings = read_settings(sink.plan.settings, sink.bad_record)

    def write(task: Iterable[list[Chunk]]) -> list[bytes]:
        [some] = task
        written: list[bytes] = []
        try:
            sink.begin()
            with closing(read_chunks(properties, sink.plan.group, some, settings)) as reads:
                for chunk, records in reads:
                    whole = whole_chunk(sink.plan, chunk.name, chunk.start)
                    written.append(sink.write(whole, records))
        except BaseException as error:
            if failure := sink.failure(error):
                return [*written, failure]
            # The driver learns of a chunk only when its task ends without an exception.
            abort(results(unpacked(written)), open_store(sink.url, sink.options))
            raise
        return written

    tasks = share(chunks, context.defaultParallelism)
    return context.parallelize(tasks, len(tasks)).mapPartitions(write).collect()


def share(chunks: Sequence[Chunk], cores: int) -> list[list[Chunk]]:
    """The chunks of each task, the largest task first: one large chunk, or small ones in their order.

    :param cores: how many tasks Spark runs at a time, as far as it knows; it learns of a cluster's executors late.
    """
    total = sum(map(_cost, chunks))
    enough = min(LARGEST_TASK, max(SMALLEST_TASK, total // (TASKS_A_CORE * cores)))
    tasks = [[chunk] for chunk in chunks if _cost(chunk) >= enough]
    room = 0
    for chunk in chunks:
        if _cost(chunk) < enough:
            if room <= 0:
                tasks.append([])
                room = enough
            tasks[-1].append(chunk)
            room -= _cost(chunk)
    return sorted(tasks, key=lambda task: -sum(map(_cost, task)))


def _cost(chunk: Chunk) -> int:
    return CHUNK_COST + chunk.end - chunk.start

"""The native reader, and that of dead letters, as a Spark job: a task has one large or several small chunks.

Records never cross the JVM.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing

import pyarrow as pa
from pyspark import SparkContext

from kafka_archiver.model.plan import Chunk
from kafka_archiver.records.pipeline.base import rows_where
from kafka_archiver.records.writer.dead_letter_reader import read_letters
from kafka_archiver.records.writer.finish_uploads import abort
from kafka_archiver.spark.reading import Reads, kafka_reader, whole_chunk, wholes
from kafka_archiver.spark.sink import Sink, results, unpacked
from kafka_archiver.values.columns import column

# The fixed cost of a chunk, counted in offsets: the requests for its objects.
CHUNK_COST = 2_000
# The size of a task, in offsets. A further Python worker costs half a CPU second to start, as much as many thousand
# records; but records may be large, so there are at least a few tasks for each core.
SMALLEST_TASK, LARGEST_TASK = 20_000, 100_000
TASKS_A_CORE = 8


def reader_of(sink: Sink, properties: Mapping[str, str]) -> Callable[[Sequence[Chunk]], Reads]:
    """Return the native reader of chunks of the sink's plan: its dead letters, or from Kafka what is not set aside.

    :param properties: librdkafka's client properties.
    """
    if sink.plan.letters:
        return letters_reader(sink)
    return kafka_reader(sink.plan, sink.job, properties)


def letters_reader(sink: Sink) -> Callable[[Sequence[Chunk]], Reads]:
    """Reads the dead letters of chunks of the sink's plan from the store."""

    def read(some: Sequence[Chunk]) -> Reads:
        for chunk in some:
            # The search for a failing record asks for parts of chunks.
            whole = whole_chunk(sink.plan, chunk.name, chunk.start)
            letters = read_letters(sink.store, whole, sink.plan.letters_of(whole), sink.job.data_keys)
            yield chunk, letters if chunk == whole else _within(letters, chunk)

    return read


def _within(batches: Iterable[pa.RecordBatch], chunk: Chunk) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        offsets = column(batch, "offset")
        yield rows_where(batch, (offsets >= chunk.start) & (offsets < chunk.end))


def write_in_tasks(
    context: SparkContext, tasks: Sequence[Sequence[Chunk]], read: Callable[[Sequence[Chunk]], Reads], sink: Sink
) -> list[bytes]:
    """Read and write the chunks of each task. `read` gives each chunk, or each part of it, with its records.

    Returns the sink's result of each chunk, and the failure of a failed task.
    """

    def write(task: Iterable[Sequence[Chunk]]) -> list[bytes]:
        [some] = task
        written: list[bytes] = []
        try:
            sink.begin()
            with closing(read(some)) as reads:
                for whole, records in wholes(sink.plan, reads):
                    written.append(sink.write(whole, records))
        except BaseException as error:
            if failure := sink.failure(error):
                return [*written, failure]
            # The driver does not get the results of a task that raises an exception: abort their uploads here.
            abort(results(unpacked(written)), sink.store)
            raise
        return written

    return context.parallelize(tasks, len(tasks)).mapPartitions(write).collect()


def share(chunks: Sequence[Chunk], cores: int) -> list[list[Chunk]]:
    """The chunks of each task, the largest task first: one large chunk, or small chunks in order.

    :param cores: parallel tasks by Spark's `defaultParallelism`; may be too low before all executors have registered.
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

"""The native reader, and that of dead letters, as a Spark job: a task has one large or several small chunks.

Records never cross the JVM.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing

import pyarrow as pa
from pyspark import SparkContext

from kafka_archiver.columns import column
from kafka_archiver.kafka.reader import read_chunks
from kafka_archiver.pipeline.rows import rows_where
from kafka_archiver.plan import Chunk
from kafka_archiver.spark.reading import read_settings, whole_chunk
from kafka_archiver.spark.sink import Sink, results, unpacked
from kafka_archiver.store import open_store
from kafka_archiver.writer.commit import abort
from kafka_archiver.writer.letters import read_letters

Reads = Generator[tuple[Chunk, Iterator[pa.RecordBatch]], None, None]

# The fixed cost of a chunk, counted in offsets: the requests for its objects.
CHUNK_COST = 2_000
# The size of a task, in offsets. A further Python worker costs a CPU second to start, as much as 100,000 records; but
# records may be large, so there are at least a few tasks for each core.
SMALLEST_TASK, LARGEST_TASK = 10_000, 100_000
TASKS_A_CORE = 8


def write_natively(
    context: SparkContext, chunks: Sequence[Chunk], properties: Mapping[str, str], sink: Sink
) -> list[bytes]:
    """Read and write the chunks. Returns the sink's result of each chunk, and the failure of a failed task.

    :param chunks: without offsets that the log has lost.
    :param properties: librdkafka's client properties.
    """
    settings, group = read_settings(sink.plan.settings, sink.job), sink.plan.group
    return write_in_tasks(context, chunks, lambda some: read_chunks(properties, group, some, settings), sink)


def write_letters(context: SparkContext, chunks: Sequence[Chunk], sink: Sink) -> list[bytes]:
    """Read the dead letters of the sink's plan from the store, and write them. Returns as `write_natively`.

    :param chunks: those of the plan that have dead letters.
    """
    return write_in_tasks(context, chunks, letters_reader(sink), sink)


def letters_reader(sink: Sink) -> Callable[[Sequence[Chunk]], Reads]:
    """Reads the dead letters of chunks of the sink's plan from the store."""

    def read(some: Sequence[Chunk]) -> Reads:
        store = open_store(sink.url, sink.options)
        for chunk in some:
            # The search for a failing record asks for parts of chunks.
            whole = whole_chunk(sink.plan, chunk.name, chunk.start)
            letters = read_letters(store, whole, sink.plan.letters_of(whole), sink.job.data_keys)
            yield chunk, letters if chunk == whole else _within(letters, chunk)

    return read


def _within(batches: Iterable[pa.RecordBatch], chunk: Chunk) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        offsets = column(batch, "offset")
        yield rows_where(batch, (offsets >= chunk.start) & (offsets < chunk.end))


def write_in_tasks(
    context: SparkContext, chunks: Sequence[Chunk], read: Callable[[Sequence[Chunk]], Reads], sink: Sink
) -> list[bytes]:
    """Read and write chunks in Spark tasks. `read` gives each chunk with its records."""

    def write(task: Iterable[list[Chunk]]) -> list[bytes]:
        [some] = task
        written: list[bytes] = []
        try:
            sink.begin()
            with closing(read(some)) as reads:
                for chunk, records in reads:
                    whole = whole_chunk(sink.plan, chunk.name, chunk.start)
                    written.append(sink.write(whole, records))
        except BaseException as error:
            if failure := sink.failure(error):
                return [*written, failure]
            # The driver does not get the results of a task that raises an exception: abort their uploads here.
            abort(results(unpacked(written)), open_store(sink.url, sink.options))
            raise
        return written

    tasks = share(chunks, context.defaultParallelism)
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

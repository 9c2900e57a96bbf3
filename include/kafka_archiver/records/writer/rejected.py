"""Dead letters read from Kafka, when the store no longer has them: the records that earlier plans rejected."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from kafka_archiver.model.plan import Chunk
from kafka_archiver.records.pipeline.rows import rows_where
from kafka_archiver.records.pipeline.variants import Variants
from kafka_archiver.records.writer.result import WriteJob
from kafka_archiver.values.columns import column


def rejected(chunk: Chunk, batches: Iterable[pa.RecordBatch], jobs: Sequence[WriteJob]) -> Iterator[pa.RecordBatch]:
    """The records that every one of the jobs rejects, as they came. Some batches may be empty.

    :param batches: whole records, as readers give them.
    """
    pipelines = [
        Variants(job.settings, chunk.topic, job.decoded, job.schemas, chunk, job.keys, aside=job.set_aside(chunk))
        for job in jobs
    ]
    for batch in batches:
        kept = batch
        for pipeline in pipelines:
            if kept.num_rows:
                reasons = pipeline.run(kept).rejected
                kept = rows_where(kept, np.isin(column(kept, "offset"), list(reasons)))
        yield kept

"""Forecasts a replay of dead letters: reads them, and writes nothing."""

from collections import Counter
from typing import NamedTuple

from kafka_archiver.context.archive_context import Context
from kafka_archiver.records.pipeline.variants import Variants
from kafka_archiver.records.writer.dead_letter_reader import read_letters
from kafka_archiver.work.dead_letters.lettered_runs import RunWithLetters
from kafka_archiver.work.dead_letters.replay_plan import as_dead_letters, schemas_for, settings_for

# Different reasons to remember. Some name a length or a number.
REASONS = 20


class ReplayForecast(NamedTuple):
    """The number of dead letters of a run that today's settings would archive, filter, or still reject, and why."""

    run: str
    letters: int
    archived: int
    filtered: int
    rejected: int
    reasons: tuple[str, ...]


def forecast_replay(context: Context, lettered: RunWithLetters) -> ReplayForecast:
    """Read a run's dead letters by today's settings.

    :raises IntegrityError: a dead letter is damaged.
    :raises ArchiverError: as the replay's own planning, if the schemas cannot be had.
    """
    settings = settings_for(context, lettered.plan).without_spark()
    frozen = schemas_for(context, lettered.plan, settings)
    # One for each partition.
    chunks = {chunk.name: chunk for chunk in lettered.plan.chunks()}
    pipelines = {
        name: Variants(settings, name.topic, frozen.schemas, frozen.texts, chunk, context.keys)
        for name, chunk in chunks.items()
    }
    reasons: Counter[str] = Counter()
    writers = [context.ledger.writer_of(lettered.plan, o.key) for o in lettered.letters]
    keys = {key: context.ledger.open_key(key) for key in {writer.data_key for writer in writers} if key}
    for chunk in lettered.plan.chunks():
        place = (chunk.topic, chunk.partition, chunk.start)
        mine = [as_dead_letters(o) for o in lettered.letters if (o.topic, o.partition, o.chunk_start) == place]
        for batch in read_letters(context.store, chunk, mine, keys) if mine else ():
            for reason in pipelines[chunk.name].run(batch).rejected.values():
                if reason in reasons or len(reasons) < REASONS:
                    reasons[reason] += 1
    frequent = tuple(reason for reason, _ in reasons.most_common())
    results = pipelines.values()
    archived, filtered = sum(p.archived for p in results), sum(p.filtered for p in results)
    return ReplayForecast(
        lettered.plan.run, lettered.rows, archived, filtered, sum(p.rejected for p in results), frequent
    )

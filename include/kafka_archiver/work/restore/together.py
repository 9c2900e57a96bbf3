"""Write several target partitions of one topic in one pass over the archive: each record goes to that of its key.

Each partition keeps a transactional writer of its own. One that falls out of the pass, after an answer that is not
sure, goes on alone behind it: the pass saves reading, and no more.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from kafka_archiver.messages.errors import UncertainError
from kafka_archiver.model.restore_progress import RestoreProgress
from kafka_archiver.work.restore.lane import LaneBatch
from kafka_archiver.work.restore.pace import Pace
from kafka_archiver.work.restore.partition_writer import PartitionWriter, Session, StoppedError
from kafka_archiver.work.restore.rows import cut, from_place

log = logging.getLogger(__name__)


def write_together(writers: Sequence[PartitionWriter]) -> list[RestoreProgress]:
    """Write what is not written yet. Returns the progress of each writer at the end of its lane.

    :param writers: of partitions of the same topic, which have the same source partitions.
    :raises PermanentError, TransientError: as `PartitionWriter.run`.
    """
    sessions: dict[int, Session] = {}
    progress: dict[int, RestoreProgress] = {}
    try:
        for number, writer in enumerate(writers):
            try:
                sessions[number] = writer.begin()[0]
            except UncertainError as error:
                _go_alone(writer, error)
        try:
            _pass(writers, sessions)
        except StoppedError:
            # Some had passed before the process was asked to end. Without a mapper's rows each row is a whole record.
            if "rows" not in writers[0].lane.allowed:
                for session in sessions.values():
                    with suppress(UncertainError):
                        session.finish()
            raise
        # Side by side: brokers that do not answer take as long for all as for one.
        with ThreadPoolExecutor(max(1, len(sessions))) as pool:
            finished = {number: pool.submit(session.finish) for number, session in sessions.items()}
        for number, future in finished.items():
            try:
                progress[number] = future.result()
            except UncertainError as error:
                _go_alone(writers[number], error)
    finally:
        for session in sessions.values():
            session.writer.close()
    return [progress[number] if number in progress else writer.run() for number, writer in enumerate(writers)]


def _pass(writers: Sequence[PartitionWriter], sessions: dict[int, Session]) -> None:
    """Give each session the records of its partition. Those that fall out are closed and removed."""
    lane, pace = writers[0].lane, writers[0].pace
    begins = {number: session.tally.place for number, session in sessions.items()}
    if not begins:
        return
    for batch in _timely(lane.read(min(begins.values())), pace):
        if batch is None:
            _each(writers, sessions, lambda _, session: session.take(None, is_waiting=True))
        else:
            # All of them, before any of them waits until it may send.
            _each(writers, sessions, lambda _, session: session.make_way(batch))  # noqa: B023 - called at once
            parts = lane.routed(batch)

            def take_own(number: int, session: Session) -> None:
                own = parts.get(writers[number].name.partition)  # noqa: B023
                if own and (own := from_place(own, begins[number])).records.num_rows:
                    session.take(own, is_waiting=False)

            _each(writers, sessions, take_own)
        if not sessions:
            return


def _timely(batches: Iterator[LaneBatch | None], pace: Pace) -> Iterator[LaneBatch | None]:
    """Yield batches; with a limit, in pieces of a second: the brokers abort a transaction that waits for long."""
    for batch in batches:
        if batch is None or not pace.is_limited:
            yield batch
        else:
            yield from (piece.batch for piece in cut(batch, pace.most_rows, pace.most_bytes))


def _each(
    writers: Sequence[PartitionWriter], sessions: dict[int, Session], step: Callable[[int, Session], None]
) -> None:
    """Do a step of each session. Those that fall out are closed and removed."""
    stopped: StoppedError | None = None
    for number, session in list(sessions.items()):
        try:
            step(number, session)
        except StoppedError as error:
            # The others commit, too, before the process ends.
            stopped = error
        except UncertainError as error:
            _go_alone(writers[number], error)
            sessions.pop(number).writer.close()
    if stopped:
        raise stopped


def _go_alone(writer: PartitionWriter, error: UncertainError) -> None:
    log.warning("%s: %s; it goes on alone, once the others are written", writer.name, error)

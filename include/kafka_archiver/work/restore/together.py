"""Write several target partitions of one topic in one pass over the archive: each record goes to that of its key.

Each partition keeps a transactional writer of its own. One that falls out of the pass, after an answer that is not
sure, goes on alone behind it: the pass saves reading, and no more.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kafka_archiver.messages.errors import UncertainError
from kafka_archiver.model.restore_progress import RestoreProgress
from kafka_archiver.work.restore.rows import from_place
from kafka_archiver.work.restore.write import PartitionWriter, Session, StoppedError

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
        _pass(writers, sessions)
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
    lane = writers[0].lane
    begins = {number: session.tally.place for number, session in sessions.items()}
    if not begins:
        return
    for batch in lane.read(min(begins.values())):
        parts = {} if batch is None else lane.routed(batch)
        stopped: StoppedError | None = None
        for number, session in list(sessions.items()):
            own = parts.get(writers[number].name.partition)
            own = None if own is None else from_place(own, begins[number])
            try:
                session.take(own if own and own.records.num_rows else None, is_waiting=batch is None)
            except StoppedError as error:
                # The others commit, too, before the process ends.
                stopped = error
            except UncertainError as error:
                _go_alone(writers[number], error)
                sessions.pop(number).writer.close()
        if stopped:
            raise stopped
        if not sessions:
            return


def _go_alone(writer: PartitionWriter, error: UncertainError) -> None:
    log.warning("%s: %s; it goes on alone, once the others are written", writer.name, error)

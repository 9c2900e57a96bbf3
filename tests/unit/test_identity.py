"""Is a log still the one that was archived? A topic made again where ids are nil, a log that was cut."""

import pytest

from kafka_archiver.kafka.first_records import LogEnd, crc32
from kafka_archiver.kafka.identity import NO_ID
from kafka_archiver.model.chunk_accounts import Witness
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.progress import Progress
from kafka_archiver.planning.changed_logs import find_changed_logs
from kafka_archiver.values.ranges import TopicPartition
from tests.support.kafka_twin import KafkaTwin
from tests.support.plans import manifest, partition, plan
from tests.support.topics import Record

NAME = TopicPartition("orders", 0)


class Log(KafkaTwin):
    """One log of five records, archived whole."""

    def __init__(self, topic_id: str = "id", epochs: bool = True) -> None:
        super().__init__(lambda: 0)
        self._epochs = epochs
        self.create_topic("orders")
        self.write("abcde")
        planned = plan(1, partition(0, 5, topic_id=topic_id, leader_epoch=0 if epochs else None))
        [account] = manifest(planned).chunks
        with_witness = account.model_copy(update={"last": Witness(offset=4, timestamp=4, value=crc32(b"e"))})
        self.known = Progress(archive="orders").after(planned, "committed", Manifest.of(planned, [], [with_witness]))

    def write(self, values: str) -> None:
        for value in values:
            offset = self.log(NAME).high
            self.produce("orders", [Record(0, offset, value.encode())])

    def remake(self) -> None:
        self.delete_topic("orders")
        self.create_topic("orders")

    def high_watermarks(self, names: object) -> dict[TopicPartition, LogEnd]:
        return {NAME: LogEnd(self.log(NAME).high, self.log(NAME).leader_epoch if self._epochs else None)}

    def doubt(self) -> str | None:
        ids = {"orders": self.known.partitions[0].topic_id}
        return find_changed_logs(self, self.known, ids, self.log_starts([NAME]), self.high_watermarks([NAME])).get(NAME)  # type: ignore[arg-type]


@pytest.mark.parametrize("epochs", [True, False])
@pytest.mark.parametrize("topic_id", ["id", NO_ID])
def test_a_log_that_grows_or_has_another_leader_is_the_same(topic_id: str, epochs: bool) -> None:
    log = Log(topic_id, epochs)
    log.write("fgh")
    assert log.doubt() is None
    log.elect(NAME)
    log.write("i")
    assert log.doubt() is None


def test_a_log_that_was_cut_and_has_grown_again_is_another_one() -> None:
    log = Log()
    log.elect(NAME, cut=2)
    log.write("xyz")
    assert "up to 5 under leader epoch 0, and the records at these offsets now were written later" in str(log.doubt())


def test_so_it_is_whatever_compaction_and_retention_have_taken_since() -> None:
    log = Log()
    log.elect(NAME, cut=2)
    log.write("xyz")
    for entry in log.log(NAME).entries[:5]:
        entry.compacted = True
    assert "were written later" in str(log.doubt())
    log.delete_records(NAME, 5)
    assert "were written later" in str(log.doubt())


def test_where_the_brokers_give_no_epochs_the_last_record_tells() -> None:
    log = Log(epochs=False)
    log.elect(NAME, cut=2)
    log.write("xyz")
    assert "the record at offset 4 differs" in str(log.doubt())


def test_a_topic_made_again_where_topics_have_no_ids_is_another_one() -> None:
    log = Log(NO_ID)
    log.remake()
    log.write("uvwxyz")
    assert "the record at offset 4 differs" in str(log.doubt())


def test_a_topic_made_again_with_the_same_record_there_is_not_told_apart_which_the_docs_say() -> None:
    log = Log(NO_ID)
    log.remake()
    log.write("vwxye")
    assert log.doubt() is None


def test_where_ids_are_nil_and_the_last_record_is_gone_nobody_can_tell_and_that_is_said() -> None:
    log = Log(NO_ID)
    log.write("f")
    log.delete_records(NAME, 5)
    assert "it is unknown whether the log of orders[0]" in str(log.doubt())
    # Where the topic has an id, it is the same topic.
    log = Log()
    log.elect(NAME)
    log.delete_records(NAME, 5)
    assert log.doubt() is None


def test_a_log_that_ends_before_what_a_backfill_has_archived_is_another_one() -> None:
    log = Log()
    ahead = log.known.partitions[0].model_copy(update={"next": 2})
    log.known = log.known.model_copy(update={"partitions": (ahead,)})
    log.elect(NAME, cut=2)
    assert "it ends at 3, and it was archived up to 5. It was cut" in str(log.doubt())
    # Where the scheduled runs themselves stand behind the end, the policies see that.
    log.elect(NAME, cut=2)
    assert log.doubt() is None

"""Dead letters come back through the real job, also when Kafka has none of their records any more."""

from dataclasses import replace

import pytest

from kafka_archiver.audit.inspection import audit
from kafka_archiver.work.dead_letters import replay_letters
from kafka_archiver.work.repair import write_again
from tests.support.archiver import Services, hour
from tests.support.topics import DAY, HOUR, Record

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_the_job_archives_them_from_the_store(services: Services) -> None:
    values = [b'{"n": %d}' % n if n % 3 else b"7" * (1 + n) for n in range(300)]
    headers = [("h", b"\xff"), ("h", None), ("", b"")]
    records = [Record(0, DAY + n % 2 * HOUR, value, b"%d" % n, headers) for n, value in enumerate(values)]
    archiver = services.archive(
        records,
        settings={"chunk_records": 100, "content": "record"},
        policies={"bad_record": "dead_letter"},
        source={"max_value_bytes": 20, "reader": "spark"},
    )
    archiver.run(hour(1), plain=True)
    account = archiver.account(hour(1))
    assert account == {"archived": 207, "dead_lettered": 93}
    before = {key: etag for key, etag in archiver.etags().items() if not key.startswith("_dead_letter/")}
    source = archiver.archive.source.model_copy(update={"max_value_bytes": None})
    archiver.archive = archiver.archive.model_copy(update={"source": source})
    archiver.context = replace(archiver.context, archive=archiver.archive)
    work = replay_letters(archiver.context, None)
    output = archiver.submit(work.archive)
    assert "of 93 dead letters of run" in output
    assert output.count("records/s") == 3, "a task's line for each chunk"
    archiver.finish(work)
    manifest = archiver.context.ledger.manifest(work.runs[-1])
    assert manifest
    assert {fate: count for fate, count in manifest.account.items() if count} == {"archived": 300}
    assert before.items() <= archiver.etags().items()
    archived_lines = sorted(
        (line for lines in archiver.lines().values() for line in lines), key=lambda line: line["offset"]
    )
    assert [line["value"].encode() for line in archived_lines] == values
    assert {str(line["headers"]) for line in archived_lines} == {str(archived_lines[1]["headers"])}
    # The dead letters are gone. An object of theirs comes back from Kafka, byte for byte.
    after = archiver.etags()
    lost = max(key for key in after if "+r1." in key)
    archiver.context.store.delete(lost)
    archiver.submit(write_again(archiver.context, [manifest.run]).archive)
    assert archiver.etags() == after
    assert archiver.uploads() == []
    assert audit(archiver.archive, archiver.context.store, archiver.now[0], deep=True).findings == ()

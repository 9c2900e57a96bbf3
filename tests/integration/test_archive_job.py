"""The main job, step by step on the real services: every record exactly once, in the hour of its timestamp."""

import pytest

from tests.support.archiver import Services, hour
from tests.support.topics import DAY, HOUR, Record

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_a_topic_is_archived_by_hour_and_a_replay_changes_no_object(services: Services) -> None:
    records = [Record(n % 2, DAY + n * HOUR // 100, b'{"n": %d}' % n) for n in range(500)]
    archiver = services.archive(records, 2, settings={"chunk_records": 100})
    work = archiver.plan(hour(4))
    output = archiver.submit(work.archive)
    assert output.count("records/s") == len(list(range(0, 250, 100))) * 2, "a line a chunk"
    proofs = archiver.finish(work)
    assert archiver.lines() == {
        f"date=2026-11-21/hour={h:02}": [
            {"n": n} for parity in (0, 1) for n in range(h * 100, h * 100 + 100) if n % 2 == parity
        ]
        for h in range(5)
    }
    assert [p.hour_start for p in proofs] == [hour(n).start for n in range(5)]
    before = archiver.etags()
    output = archiver.submit(archiver.plan(hour(4)).archive)
    assert "objects have the same bytes again; 0 were missing" in output
    assert archiver.etags() == before

"""What a person tells a single run, right and wrong."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kafka_archiver.errors import ConfigError
from kafka_archiver.orchestration.operators import with_params
from kafka_archiver.orchestration.params import Rebuild
from tests.dags.conftest import MakeArchive

pytestmark = pytest.mark.dags
FIVE = datetime(2026, 11, 21, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("wanted", "hour", "run", "keep"),
    [
        ({"hour": "2026-11-21T05:00:00Z"}, FIVE, "", False),
        ({"hour": "2026-11-21T05:00"}, FIVE, "", False),
        ({"hour": "2026-11-21T06:00:00+01:00", "keep": True}, FIVE, "", True),
        ({"run": "20261121T050000Z"}, None, "20261121T050000Z", False),
        ({"run": "20261121T050000Z+r2"}, None, "20261121T050000Z+r2", False),
    ],
)
def test_a_rebuild_is_of_an_hour_or_of_a_run(
    wanted: dict[str, Any], hour: datetime | None, run: str, keep: bool
) -> None:
    assert Rebuild.of(wanted) == Rebuild(hour, run, keep)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"keep": True},
        {"hour": "2026-11-21T05:00:00Z", "run": "20261121T050000Z"},
        {"hour": "yesterday"},
        {"run": "last"},
        {"run": "20261121T050000Z", "keep": "yes"},
        {"hours": "2026-11-21T05:00:00Z"},
    ],
)
def test_another_rebuild_is_refused_with_what_was_found(wanted: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"in the run's `rebuild`: expected .* found \{"):
        Rebuild.of(wanted)


def test_a_policy_or_choice_that_there_is_not_is_refused_by_name(archive: MakeArchive) -> None:
    for policies, told in (
        ({"lost_offset": "record_loss"}, "`lost_offset` is not a key"),
        ({"lost_offsets": "ignore"}, "`lost_offsets`: expected 'fail' or 'record_loss'; found 'ignore'"),
    ):
        with pytest.raises(ConfigError, match="in the run's `policies`: ") as found:
            with_params(archive(), {"max_records": 1, "policies": policies, "rebuild": None})
        assert told in str(found.value)
        assert "(policies: lost_offsets, recreated_topic, " in str(found.value)

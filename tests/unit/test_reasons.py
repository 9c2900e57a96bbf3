"""The reason of an incomplete hour names its command once; what shows the command as an action shows the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.advice import fill, repair
from kafka_archiver.model.reasons import FORMER_GONE, reason_of_a_gone_proof, reason_of_holes, split_reason

pytestmark = pytest.mark.unit

NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True)


@given(NAMES, NAMES, st.text(max_size=60))
def test_a_reason_is_what_an_hour_lacks_and_its_command_and_no_other_archive_s(
    archive: str, other: str, holes: str
) -> None:
    whole = reason_of_holes(archive, holes)
    assert whole.count(fill(archive).quoted) == 1 + holes.count(fill(archive).quoted)
    lack, action = split_reason(archive, whole)
    assert (lack.endswith("whose records may be of this hour"), action) == (True, fill(archive))
    assert split_reason(archive, reason_of_a_gone_proof(archive)) == (FORMER_GONE, repair(archive))
    if other != archive:
        assert split_reason(other, whole) == (whole, None)
    assert split_reason(archive, holes) == (holes, None)

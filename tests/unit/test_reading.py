"""The duty of an engine: one result for each chunk that it was given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.spark.reading import nothing_there
from kafka_archiver.work.archive.engine import require_all_results
from tests.support.values import plans

pytestmark = pytest.mark.unit


@given(plans(least=1), st.data())
def test_one_result_a_chunk_and_nothing_else_will_do(plan: object, data: st.DataObject) -> None:
    chunks = list(plan.chunks())  # type: ignore[attr-defined]
    # Some begin later than planned, or end earlier: the log has no more.
    answered = [c.model_copy(update={"start": data.draw(st.integers(c.start, c.end - 1))}) for c in chunks]
    answered = [c.model_copy(update={"end": data.draw(st.integers(c.start + 1, c.end))}) for c in answered]
    results = data.draw(st.permutations([nothing_there(chunk) for chunk in chunks]))
    require_all_results(plan, answered, results)  # type: ignore[arg-type]

    place = data.draw(st.integers(0, len(results) - 1))
    without = [*results[:place], *results[place + 1 :]]
    with pytest.raises(IntegrityError, match=r"\) was given to the engine, and has no result.*please report it"):
        require_all_results(plan, answered, without)  # type: ignore[arg-type]
    with pytest.raises(IntegrityError, match=r"has 2"):
        require_all_results(plan, answered, [*results, results[place]])  # type: ignore[arg-type]
    other = data.draw(st.sampled_from(results))
    if other is not results[place]:
        with pytest.raises(IntegrityError, match="has no result"):
            require_all_results(plan, answered, [*without, other])  # type: ignore[arg-type]

"""Manifests: every offset of the plan is accounted for once, and what does not add up is named."""

import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from kafka_archiver.model.chunk_accounts import FATES, ChunkAccount, totals
from kafka_archiver.model.manifest import Commit, Manifest, ObjectEntry, discrepancies
from kafka_archiver.model.plan import Chunk, PartitionPlan, Plan
from tests.support import values
from tests.support.values import FIVE, plans, runs

pytestmark = pytest.mark.unit
# Drawing a whole run is slow, and there are few ways in which runs differ.
few = settings(max_examples=40)

Pairs = tuple[tuple[int, int], ...]
CHUNK = Chunk(topic="t", partition=0, generation=0, start=10, end=20)


def account(**counts: Any) -> ChunkAccount:
    return ChunkAccount(**CHUNK.model_dump(), **counts)


def changed(manifest: Manifest, **fields: Any) -> Manifest:
    return Manifest.model_validate({**dict(manifest), **fields})


@few
@given(runs())
def test_the_account_sums_to_the_plan(run: tuple[Plan, Manifest]) -> None:
    plan, manifest = run
    lost = sum(c.range.size for c in plan.lost_chunks())
    assert list(manifest.account) == list(FATES)
    assert sum(manifest.account.values()) == plan.count + lost
    assert manifest.account["lost"] == lost
    assert manifest.account["archived"] == sum(o.offsets for o in manifest.objects)
    assert discrepancies(plan, manifest) == []


@few
@given(runs(), st.randoms())
def test_a_manifest_does_not_depend_on_who_finished_first(run: tuple[Plan, Manifest], random: Any) -> None:
    plan, manifest = run
    objects = list(manifest.stored)
    accounts = [a for a in manifest.chunks if not a.lost]
    random.shuffle(objects)
    random.shuffle(accounts)
    assert Manifest.of(plan, objects, accounts).to_json() == manifest.to_json()


@few
@given(runs(), plans())
def test_a_manifest_of_another_plan_is_told(run: tuple[Plan, Manifest], other: Plan) -> None:
    assume(other != run[0])
    digests = run[0].digest[:12], other.digest[:12]
    assert discrepancies(other, run[1]) == ["the manifest is of plan {}, the ledger's is {}".format(*digests)]


def test_a_changed_plan_of_any_number_of_chunks_is_told_at_once() -> None:
    state = {"topic": "t", "topic_id": "id", "partition": 0, "start": 0, "log_start": 0}
    plans = [
        values.plan(PartitionPlan.model_validate({**state, "end": end, "log_end": end, "ranges": ((0, end),)}))
        for end in (9, (1 << 63) - 1)
    ]
    assert len(discrepancies(plans[1], Manifest.of(plans[0], (), ()))) == 1


@few
@given(runs(least=1), st.data())
def test_a_missing_account_is_told(run: tuple[Plan, Manifest], data: st.DataObject) -> None:
    plan, manifest = run
    gone = data.draw(st.sampled_from(manifest.chunks))
    remaining = tuple(a for a in manifest.chunks if a != gone)
    problems = discrepancies(plan, changed(manifest, chunks=remaining, account=totals(remaining)))
    assert f"no account of {gone.chunk}" in problems


@few
@given(runs(least=1), st.data())
def test_an_account_given_twice_is_told(run: tuple[Plan, Manifest], data: st.DataObject) -> None:
    plan, manifest = run
    twice = (*manifest.chunks, data.draw(st.sampled_from(manifest.chunks)))
    assert "a chunk is accounted for twice" in discrepancies(
        plan, changed(manifest, chunks=twice, account=totals(twice))
    )


@few
@given(runs())
def test_an_account_of_what_was_not_planned_is_told(run: tuple[Plan, Manifest]) -> None:
    plan, manifest = run
    more = (*manifest.chunks, account(filtered=10))
    problems = discrepancies(plan, changed(manifest, chunks=more, account=totals(more)))
    assert problems == ["an account of t[0] [10, 20), which is not in the plan"]


@few
@given(runs(least=1), st.data())
def test_a_missing_object_or_row_is_told(run: tuple[Plan, Manifest], data: st.DataObject) -> None:
    plan, manifest = run
    short = data.draw(st.sampled_from(manifest.objects))
    remaining = tuple(o for o in manifest.objects if o != short)
    [problem] = discrepancies(plan, changed(manifest, objects=remaining))
    assert re.search(r"offsets archived( in \d+ rows)?, its objects hold \d+ rows", problem)
    longer = short.model_copy(update={"rows": short.rows + 1})
    [problem] = discrepancies(plan, changed(manifest, objects=(*remaining, longer)))
    assert re.search(r"offsets archived( in \d+ rows)?, its objects hold \d+ rows", problem)


@few
@given(runs(least=1), st.data())
def test_an_object_of_no_chunk_is_told(run: tuple[Plan, Manifest], data: st.DataObject) -> None:
    plan, manifest = run
    stray = data.draw(st.sampled_from(manifest.objects)).model_copy(update={"topic": "stray", "chunk_start": 7})
    problems = discrepancies(plan, changed(manifest, objects=(*manifest.objects, stray)))
    assert problems == [f"objects of stray[{stray.partition}] 7, a chunk without account"]


@few
@given(runs(least=1), st.data())
def test_a_lost_offset_that_is_in_no_range_and_of_no_lost_object_is_told(
    run: tuple[Plan, Manifest], data: st.DataObject
) -> None:
    """Such an account may be right, where an object of the chunk is gone for good: then the manifest names it."""
    plan, manifest = run
    short = data.draw(st.sampled_from(manifest.objects))
    [mine] = [a for a in manifest.chunks if (a.topic, a.partition, a.start) == _place(short)]
    archived = mine.archived - short.offsets
    rows = mine.rows and archived and mine.rows - short.rows
    less = mine.model_copy(update={"archived": archived, "lost": mine.lost + short.offsets, "rows": rows or None})
    chunks = tuple(less if a == mine else a for a in manifest.chunks)
    remaining = tuple(o for o in manifest.objects if o != short)
    without = changed(manifest, objects=remaining, chunks=chunks, account=totals(chunks))
    assert discrepancies(plan, without) == [
        f"{mine.chunk}: {less.lost} offsets lost, but not in its ranges and lost objects"
    ]
    repaired = plan.model_copy(update={"lost_objects": (short.key,)})
    named = changed(without, lost_objects=(short,), plan_digest=repaired.digest)
    assert discrepancies(repaired, named) == []
    [unknown] = discrepancies(plan, changed(without, lost_objects=(short,)))
    assert unknown == f"the lost objects ['{short.key}'] are not those of the plan: []"


def _place(item: ObjectEntry) -> tuple[str, int, int]:
    return item.topic, item.partition, item.chunk_start


@few
@given(runs(), st.sampled_from(FATES))
def test_a_total_that_is_not_the_sum_is_told(run: tuple[Plan, Manifest], fate: str) -> None:
    plan, manifest = run
    wrong = {**manifest.account, fate: manifest.account[fate] + 1}
    [problem] = discrepancies(plan, changed(manifest, account=wrong))
    assert problem.startswith("the account says")


@pytest.mark.parametrize("wrong", [{}, {"archived": 1}, {**dict.fromkeys(FATES, 0), "other": 0}])
def test_a_manifest_without_exactly_the_five_totals_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="expected the counts archived, filtered, dead_lettered, absent, lost"):
        Manifest(archive="a", run="r", plan_digest="d", account=wrong, objects=(), chunks=())


class TestChunkAccount:
    @given(st.lists(st.integers(0, 12), min_size=4, max_size=4))
    def test_counts_add_up_to_the_chunk_or_are_refused(self, counts: list[int]) -> None:
        fates = dict(zip(("archived", "filtered", "dead_lettered", "lost"), counts, strict=True))
        listed = {"lost_ranges": ((10, 10 + fates["lost"]),) if fates["lost"] else ()}
        if sum(counts) == CHUNK.range.size:
            assert sum(totals([account(**fates, **listed)]).values()) == CHUNK.range.size
        else:
            with pytest.raises(ValidationError, match=rf"has 10 offsets but {sum(counts)} are accounted for"):
                account(**fates, **listed)

    def test_a_negative_count_cannot_make_it_add_up(self) -> None:
        with pytest.raises(ValidationError, match="greater than or equal to 0"):
            account(archived=11, filtered=-1)

    @pytest.mark.parametrize(
        "absent",
        [(), ((10, 12),), ((10, 14),), ((9, 12),), ((18, 21),), ((10, 12), (11, 12)), ((10, 12), (30, 31))],
    )
    def test_absent_ranges_that_are_not_the_absent_offsets_are_refused(
        self, absent: tuple[tuple[int, int], ...]
    ) -> None:
        with pytest.raises(ValidationError, match=r"the absent ranges are (not the 3 absent offsets|outside)"):
            account(archived=7, absent=3, absent_ranges=absent)

    @pytest.mark.parametrize("absent", [((12, 14), (10, 11)), ((10, 11), (11, 13)), ((10, 12), (10, 11))])
    def test_absent_ranges_have_one_form(self, absent: Pairs) -> None:
        with pytest.raises(ValidationError, match="the absent ranges are outside, not sorted, or could be fewer"):
            account(archived=7, absent=3, absent_ranges=absent)

    def test_a_chunk_with_nothing_there_is_all_absent_and_a_lost_one_all_lost(self) -> None:
        assert ChunkAccount.nothing_there(CHUNK) == account(absent=10, absent_ranges=((10, 20),))
        assert ChunkAccount.all_lost(CHUNK) == account(lost=10, lost_ranges=((10, 20),))
        with pytest.raises(ValidationError, match="the lost ranges are more than the 9 lost offsets"):
            account(archived=1, lost=9, lost_ranges=((10, 20),))
        assert ChunkAccount.all_lost(CHUNK).chunk == CHUNK


@pytest.mark.parametrize(
    "wrong",
    [
        {"manifest_digest": None},
        {"by": "another"},
        {"outcome": "replaced", "manifest_digest": "m", "by": "another"},
        {"outcome": "given_up", "manifest_digest": None},
    ],
)
def test_a_run_has_one_end(wrong: dict[str, Any]) -> None:
    end = {"archive": "a", "run": "r", "plan_digest": "p", "manifest_digest": "m", "committed_at": FIVE}
    assert Commit.model_validate(end).outcome == "committed"
    if wrong.get("outcome") == "given_up":
        assert Commit.model_validate({**end, **wrong, "by": "the next run"})
    with pytest.raises(ValidationError, match="expected a manifest digest of a committed run, else the run"):
        Commit.model_validate({**end, **wrong})


@few
@given(runs(least=1, sidecars=True), st.data())
def test_a_sidecar_that_is_missing_or_too_many_is_told(run: tuple[Plan, Manifest], data: st.DataObject) -> None:
    plan, manifest = run
    assert discrepancies(plan, manifest) == []
    chosen = data.draw(st.sampled_from(manifest.sidecars))
    remaining = tuple(o for o in manifest.sidecars if o != chosen)
    assume(remaining)
    assert discrepancies(plan, changed(manifest, sidecars=remaining)) == [f"{chosen.sidecar_of} has no sidecar"]
    other = chosen.model_copy(update={"sidecar_of": "another"})
    more = changed(manifest, sidecars=(*manifest.sidecars, other))
    assert discrepancies(plan, more) == ["a sidecar of another, which is not an object"]


@few
@given(runs(least=1), st.sampled_from([{"rows": 0}, {"sidecar_of": "another"}]))
def test_only_a_sidecar_has_no_rows(run: tuple[Plan, Manifest], change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="expected rows, or no rows and `sidecar_of`"):
        ObjectEntry.model_validate({**dict(run[1].objects[0]), **change})

"""The manifest of a repair: whatever is lost, every offset of the plan is accounted for once, and lost by name."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.model.manifest import Manifest, ObjectEntry, discrepancies
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.repaired import without_lost
from tests.support.values import runs

pytestmark = pytest.mark.unit
few = settings(max_examples=60)


def repair(old: Plan, before: Manifest, lost: set[str]) -> Plan:
    """The plan of a repair, as `work.repair` makes it."""
    named = (*sorted({*lost, *(o.key for o in before.lost_objects)}),)
    return old.model_copy(
        update={"revision": old.revision + 1, "supersedes": old.run, "origin": "repair", "lost_objects": named}
    )


def some(data: st.DataObject, manifest: Manifest) -> set[str]:
    return data.draw(st.sets(st.sampled_from([o.key for o in manifest.stored]))) if manifest.stored else set()


def offsets(objects: tuple[ObjectEntry, ...]) -> int:
    return sum(o.offsets for o in objects)


@few
@given(runs() | runs(sidecars=True), st.data())
def test_the_account_still_adds_up(run: tuple[Plan, Manifest], data: st.DataObject) -> None:
    old, before = run
    plan = repair(old, before, some(data, before))
    after = Manifest.from_json(without_lost(plan, before).to_json(), "a manifest")
    assert discrepancies(plan, after) == []
    assert sum(after.account.values()) == sum(before.account.values())
    assert (after.run, after.revision, after.policies) == (plan.run, plan.revision, before.policies)
    assert {fate: after.account[fate] for fate in ("filtered", "absent")} == {
        fate: before.account[fate] for fate in ("filtered", "absent")
    }
    assert after.account["lost"] == before.account["lost"] + offsets(after.lost_objects)
    # What was lost before anybody could read it is in the ranges, and in those alone.
    assert [a.lost_ranges for a in after.chunks] == [a.lost_ranges for a in before.chunks]


@few
@given(runs() | runs(sidecars=True), st.data())
def test_each_object_is_kept_as_it_was_or_lost_by_name(run: tuple[Plan, Manifest], data: st.DataObject) -> None:
    old, before = run
    lost = some(data, before)
    after = without_lost(repair(old, before, lost), before)
    assert {o.key for o in after.lost_objects} == lost
    assert after.objects == tuple(o for o in before.objects if o.key not in lost)
    assert after.dead_letters == tuple(o for o in before.dead_letters if o.key not in lost)
    assert after.sidecars == tuple(o for o in before.sidecars if not {o.key, o.sidecar_of} & lost)
    gone = {o.key for o in before.sidecars if o.sidecar_of in lost} - lost
    assert sorted((*after.stored, *after.lost_objects), key=lambda o: o.key) == sorted(
        (o for o in before.stored if o.key not in gone), key=lambda o: o.key
    )


@few
@given(runs() | runs(sidecars=True), st.data())
def test_a_repair_of_a_repair_is_the_repair_of_both(run: tuple[Plan, Manifest], data: st.DataObject) -> None:
    old, before = run
    first = repair(old, before, some(data, before))
    between = without_lost(first, before)
    second = repair(first, between, some(data, between))
    after = without_lost(second, between)
    assert discrepancies(second, after) == []
    assert after == without_lost(second, before), "whichever way it came there"

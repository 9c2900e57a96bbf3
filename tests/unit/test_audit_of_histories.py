"""Whatever happens to an archive, its audit is clean; whatever one file of it is then removed or edited, it is not."""

import contextlib
import json
import uuid

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.support.lake import HOUR, Lake

NAMES = [TopicPartition("orders", number) for number in (0, 1)]
UNTIL = st.sampled_from(["settled", "settled", "planned", "written", "committed"])
EVENTS = st.one_of(
    st.tuples(st.just("grow"), st.sampled_from(NAMES), st.integers(1, 4)),
    st.tuples(st.just("run"), UNTIL),
    st.tuples(st.just("run"), st.just("settled")),
    st.tuples(st.just("run"), st.just("settled")),
    st.tuples(st.just("backfill"), st.integers(0, 8), UNTIL),
    st.tuples(st.just("rebuild"), st.integers(0, 8), st.booleans(), UNTIL),
    st.tuples(st.just("late"), st.sampled_from(NAMES), st.integers(-1, 8)),
    st.tuples(st.just("bad"), st.sampled_from(NAMES)),
    st.tuples(st.just("retention"), st.sampled_from(NAMES), st.integers(1, 3)),
    st.tuples(st.just("recreate")),
    st.tuples(st.just("forget"), st.sampled_from(NAMES)),
    st.tuples(st.just("rewind"), st.sampled_from(NAMES), st.integers(0, 3)),
)
POLICIES = {
    "lost_offsets": "record_loss",
    "recreated_topic": "new_generation",
    "moved_group": "new_generation",
    "bad_record": "dead_letter",
}
MAY_BE = {"lost"}


class History:
    """The events of one archive, hour after hour."""

    def __init__(self) -> None:
        store = MemoryStore(uuid.uuid4().hex)
        self.lake = Lake(store, dict.fromkeys(NAMES, Range(0, 2)), settings={"chunk_records": 2}, policies=POLICIES)
        self.hour = 3

    def happen(self, what: str, *how: object) -> None:
        # What is refused leaves what is there, and the audit is of that.
        with contextlib.suppress(ArchiverError):
            getattr(self, what)(*how)

    def grow(self, name: TopicPartition, number: int) -> None:
        log = self.lake.logs[name]
        self.lake.logs[name] = Range(log.start, log.end + number)

    def run(self, until: str) -> None:
        self.hour += 1
        self.lake.run(self.hour, until=until)

    def backfill(self, number: int, until: str) -> None:
        self.lake.run(number, "backfill", until)

    def rebuild(self, number: int, keep: bool, until: str) -> None:
        runs = sorted({run.partition("+")[0] for run in self.lake.ledger.runs()})
        if runs:
            self.lake.rebuild(runs[number % len(runs)], keep, until)

    def late(self, name: TopicPartition, number: int) -> None:
        time = (self.lake.brokers.first + number) * HOUR if number >= 0 else -1
        self.lake.odd.setdefault((name, self.lake.logs[name].end), {})["timestamp"] = time
        self.grow(name, 1)

    def bad(self, name: TopicPartition) -> None:
        self.lake.odd.setdefault((name, self.lake.logs[name].end), {})["value"] = b"no\njson"
        self.grow(name, 1)

    def retention(self, name: TopicPartition, number: int) -> None:
        log = self.lake.logs[name]
        self.lake.logs[name] = Range(min(log.start + number, log.end), log.end)

    def recreate(self) -> None:
        self.lake.brokers.ids["orders"] = uuid.uuid4().hex
        self.lake.logs.update(dict.fromkeys(NAMES, Range(0, 1)))
        self.lake.odd.clear()

    def forget(self, name: TopicPartition) -> None:
        self.lake.brokers.group.pop(name, None)

    def rewind(self, name: TopicPartition, number: int) -> None:
        self.lake.brokers.group[name] = self.lake.logs[name].start + number

    def committed(self) -> set[str]:
        """Runs that are final."""
        ends = {run: self.lake.ledger.commit(run) for run in self.lake.ledger.runs()}
        return {run for run, end in ends.items() if end and end.outcome == "committed"}

    def promised(self) -> set[str]:
        """Objects that the manifests which count name, found without the code under test."""
        # Oldest first: the last revision counts.
        best = {run.partition("+")[0]: run for run in self.lake.ledger.runs() if run in self.committed()}
        manifests = [self.lake.ledger.manifest(run) for run in best.values()]
        return {o.key for m in manifests if m for o in m.stored}


@given(st.lists(EVENTS, min_size=3, max_size=10), st.data())
@settings(max_examples=40)
def test_an_audit_is_clean_until_something_is_removed_or_edited(
    events: list[tuple[object, ...]], data: st.DataObject
) -> None:
    history = History()
    for event in events:
        history.happen(*event)  # type: ignore[arg-type]
        report = history.lake.audit()
        assert {f.kind for f in report.findings} <= MAY_BE, (event, report.findings)
    history.run("settled")
    report = history.lake.audit(deep=True)
    assert {f.kind for f in report.findings} <= MAY_BE
    # What a rebuild that was given up, or a run that was replaced, has written, nobody needs.
    keys = [key for key in sorted(s.key for s in history.lake.store.list("")) if not key.endswith("/intent.json")]
    of_unfinished = tuple(f"/{run}/" for run in report.unfinished)
    promised = history.promised()
    keys = [k for k in keys if k in promised or (k.startswith("_ledger/") and not any(u in k for u in of_unfinished))]
    final = history.committed()
    keys = [k for k in keys if not k.endswith("/manifest.json") or k.split("/")[-2] in final]
    # Claims are no part of an archive: the next plan takes one again that is gone, and refuses one that is not its own.
    keys = [k for k in keys if not k.startswith("_ledger/_topics/")]
    key = data.draw(st.sampled_from(keys))
    stored = history.lake.store.get(key) or b""
    if data.draw(st.booleans()):
        history.lake.store.delete(key)
        if key.endswith("/progress.json"):
            # Where only the first run has changed an hour, it may never have been written: then no run is settled.
            report = history.lake.audit()
            assert report.verdict == "damaged" or set(report.unfinished) == set(history.lake.ledger.runs())
            return
    else:
        edited = json.loads(stored) if key.startswith("_ledger/") else None
        history.lake.store.put(key, b"{}" if edited else stored[:-1])
    assert history.lake.audit().verdict == "damaged", key

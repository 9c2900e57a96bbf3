"""A store that an older release wrote: this release reads it, writes it alike, and goes on where that one stopped.

`golden/ledger_of_0_1.json` is such a store, byte for byte: two settled runs, one of them rebuilt, a dead letter, and
a run that is written but not committed. Never make it again with a newer release.
"""

import base64
import json
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.model.manifest import Claim, Commit, Intent, Manifest, Settled
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import HourProof
from kafka_archiver.state.status.condition import observe
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.documents import Document
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.support.lake import Lake

OLD = json.loads((Path(__file__).parent / "golden" / "ledger_of_0_1.json").read_text())
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
OPEN = "20261120T020000Z"
KINDS: dict[str, type[Document]] = {
    "archive": Claim, "claim": Claim, "plan": Plan, "manifest": Manifest, "intent": Intent, "commit": Commit,
    "settled": Settled, "progress": Progress, "hour": HourProof,
}  # fmt: skip


def data(stored: dict[str, str]) -> bytes:
    return stored["text"].encode() if "text" in stored else base64.b64decode(stored["base64"])


def written_by_the_open_run() -> set[str]:
    """Return the keys that the unfinished run has written since it was planned."""
    own = {f"_ledger/old/runs/{OPEN}/{name}.json" for name in ("manifest", "intent")}
    promised = json.loads(OLD["objects"][f"_ledger/old/runs/{OPEN}/manifest.json"]["text"])["objects"]
    return own | {promise["key"] for promise in promised}


def old_lake(state: str) -> Lake:
    """The archive in the older release's store, its open run `planned` or `written`."""
    store = MemoryStore(uuid.uuid4().hex)
    left_out = written_by_the_open_run() if state == "planned" else set()
    for key, stored in OLD["objects"].items():
        if key not in left_out:
            store._bucket.write(key, data(stored), stored["etag"])
    logs = {P0: Range(0, 5), P1: Range(0, 5)}
    lake = Lake(store, logs, policies={"bad_record": "dead_letter"}, odd={(P0, 1): {"value": b"a\nb"}}, name="old")
    lake.now = datetime.fromisoformat(OLD["now"])
    lake.brokers.group.update({P0: 4, P1: 3})
    lake.brokers.stamps.update({P0: "4 kafka-archiver old #2", P1: "3 kafka-archiver old #2"})
    return lake


@pytest.mark.parametrize("key", [key for key in OLD["objects"] if key.startswith("_ledger/")])
def test_each_old_document_is_read_and_has_the_same_bytes_again(key: str) -> None:
    content = data(OLD["objects"][key])
    kind = KINDS[json.loads(content)["document"].removeprefix("kafka-archiver/")]
    document = kind.from_json(content, key)
    assert document.to_json() == content
    # As a value of this release, without the bytes that were read.
    assert kind.model_validate(document.model_dump()).to_json() == content


def test_an_old_run_that_is_written_is_finished_with_the_bytes_of_the_old_release() -> None:
    lake = old_lake("written")
    assert [plan.run for plan in observe(lake.context).line.unfinished] == [OPEN]
    lake.logs.update({P0: Range(0, 7), P1: Range(0, 6)})
    lake.run(3)
    # Derived documents go on; all others, and all objects, are those of the old release.
    derived = ("_ledger/old/progress.json", "_ledger/old/hours/")
    same = {key: data(stored) for key, stored in OLD["objects"].items() if not key.startswith(derived)}
    assert {key: lake.store.get(key) for key in same} == same
    went_on(lake, "committed", 5)


def test_an_old_plan_of_another_encoding_is_refused_and_planned_anew() -> None:
    lake = old_lake("planned")
    advice = f"encoding 3, this code writes 4.*airflow archive rebuild old --run {OPEN}"
    with pytest.raises(PermanentError, match=advice):
        lake.run(3)
    assert lake.ledger.commit(OPEN) is None
    assert all(lake.store.head(key) is None for key in written_by_the_open_run())
    lake.rebuild(OPEN)
    lake.run(3)
    went_on(lake, "replaced", 6)


def went_on(lake: Lake, open_run: str, settled: int) -> None:
    ends: Any = {run: lake.ledger.commit(run) for run in (OPEN, "20261120T030000Z")}
    assert {run: end.outcome for run, end in ends.items()} == {OPEN: open_run, "20261120T030000Z": "committed"}
    assert lake.audit(deep=True).findings == ()
    progress = lake.ledger.progress()
    assert progress is not None
    assert progress.settled == settled


def test_an_old_dead_letter_and_an_old_run_can_be_archived_again() -> None:
    lake = old_lake("written")
    lake.run(3)
    lake.odd.clear()
    lake.rebuild("20261120T010000Z")
    assert lake.audit(deep=True).verdict == "clean"

"""Objects that are encrypted before they are sent: every step, with formats that differ in how they are written."""

import uuid
from typing import Any, BinaryIO

import pytest

from kafka_archiver.audit.content import read_through
from kafka_archiver.config import Archive
from kafka_archiver.context.print_object import from_store, lines
from kafka_archiver.encryption import Keyring
from kafka_archiver.encryption.masters import LocalMaster
from kafka_archiver.messages.errors import ConfigError, IntegrityError, PermanentError
from kafka_archiver.model.object_keys import is_dead_letter, key_document
from kafka_archiver.state.doctor.check import tried
from kafka_archiver.state.doctor.store import check_encryption
from kafka_archiver.store import Store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.data_keys import rotate_data_keys
from kafka_archiver.work.dead_letters import forecast_replay, runs_with_letters
from kafka_archiver.work.repair import find_repairs, write_again, write_sidecars
from kafka_archiver.work.verify import verify
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.contract

P0 = TopicPartition("orders", 0)
FIRST, SECOND = LocalMaster(b"1" * 32), LocalMaster(b"2" * 32)
CLIENT = {"encryption": {"client": {"connection": "master_key"}}}
FORMATS: dict[str, dict[str, Any]] = {
    "jsonl": {"format": "jsonl", "content": "record"},
    "parquet": {"format": "parquet", "content": "record"},
    "avro": {"format": "avro", "content": "record", "codec": "deflate"},
    "block_gzip": {"format": "block_gzip", "content": "record"},
    "mak": {"format": "mak", "content": "record"},
}
MARK = b"a secret of the customer"
RUN = hour(2).id


def new_lake(store: Store | None = None, **settings: Any) -> Lake:
    """Eight records; two make a chunk."""
    odd = {(P0, n): {"value": b'{"n":%d,"%s":1}' % (n, MARK)} for n in range(8)}
    settings = {**CLIENT, **settings}
    chosen_store = store or MemoryStore(uuid.uuid4().hex)
    return Lake(chosen_store, {P0: Range(0, 8)}, settings, {"bad_record": "dead_letter"}, odd, keyring=Keyring([FIRST]))


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest) -> Lake:
    lake = new_lake(**FORMATS[request.param])
    lake.run(2)
    return lake


def objects(lake: Lake) -> dict[str, bytes]:
    return {key: lake.store.get(key) or b"" for key in lake.stored()}


def printed(lake: Lake) -> list[bytes]:
    keys = [o.key for o in lake.manifest(RUN).objects]
    return [line for key in keys for line in shown(key, from_store(lake.store, key, lake.ledger.open_key))]


def shown(key: str, source: BinaryIO) -> list[bytes]:
    return b"".join(lines(key, source)).split(b"\n")[:-1]


def test_all_that_is_stored_is_encrypted_and_every_reader_reads_it(lake: Lake) -> None:
    assert len(objects(lake)) in (8, 16)
    for key, data in objects(lake).items():
        assert key.endswith(".enc")
        assert data.startswith(b"KAE1")
    assert not [stat.key for stat in lake.store.list("") if MARK in (lake.store.get(stat.key) or b"")]
    report = lake.audit(deep=True)
    assert (report.findings, report.counts.read) == ((), len(objects(lake)))
    plain = new_lake(**{**lake.settings, "encryption": "none"})
    plain.run(2)
    lines = [line for o in plain.manifest(RUN).objects for line in shown(o.key, from_store(plain.store, o.key))]
    assert printed(lake) == lines
    assert len(lines) == 8


def test_a_replay_gives_the_same_bytes_and_a_rebuild_has_a_key_of_its_own(lake: Lake) -> None:
    before, plan = objects(lake), lake.planned(RUN)
    for key in before:
        lake.store.delete(key)
    lake.run(2)
    assert objects(lake) == before
    rebuilt = lake.planned(lake.rebuild(RUN))
    assert rebuilt.data_key not in (None, plan.data_key)
    assert not set(objects(lake)) & set(before)
    assert lake.audit(deep=True).findings == ()


def test_an_object_at_the_key_of_another_one_is_found(lake: Lake) -> None:
    first_object, second_object = (o for o in lake.manifest(RUN).objects[:2])
    lake.store.put(first_object.key, lake.store.get(second_object.key) or b"")
    with pytest.raises(IntegrityError, match="another object"):
        printed(lake)
    assert first_object.key in {f.subject for f in lake.audit(deep=True).damage}
    lake.finish(write_again(lake.context, list(find_repairs(lake.context, lake.audit(deep=True)).to_rewrite)))
    assert lake.audit(deep=True).findings == ()


def test_damage_that_keeps_size_and_checksum_is_found(lake: Lake) -> None:
    """Who may write the bucket and the ledger can do it: a CRC-32 is no signature, the tags of the segments are."""
    [first, *_] = lake.manifest(RUN).objects
    data = bytearray(lake.store.get(first.key) or b"")
    data[-1] ^= 1
    lake.store.put(first.key, bytes(data))
    stat = lake.store.head(first.key)
    assert stat
    plan = lake.planned(RUN)
    forged = first.model_copy(update={"checksum": stat.checksum})
    fetch = lambda start, length: lake.store.read(first.key, start, length) or b""  # noqa: E731
    assert plan.data_key
    [fault] = read_through(forged, plan, fetch, secret=lake.ledger.open_key(plan.data_key).secret)
    assert "is not what was encrypted with this key" in fault


def test_without_the_master_key_bytes_are_compared_and_nothing_is_read(lake: Lake) -> None:
    count = len(objects(lake))
    for keyring, why in [(None, "no master key is given"), (Keyring([SECOND]), "names another one: add the earlier")]:
        assert lake.audit(keyring=keyring).verdict == "clean"
        report = lake.audit(deep=True, keyring=keyring)
        [finding] = report.findings
        assert (report.verdict, finding.kind) == ("damaged", "not-opened")
        assert finding.expected == f"the master key {FIRST.name}, which opens their data keys"
        assert f"{count} encrypted objects, this one the first, cannot be opened: " in finding.observed
        assert why in finding.observed
    verify(lake.context, [RUN])
    lake.use(None)
    with pytest.raises(ConfigError, match="no master key is given"):
        lake.run(2)
    lake.use(Keyring([SECOND]))
    with pytest.raises(ConfigError, match=r"`store.encryption.client` names another one: add the earlier secret"):
        lake.run(2)


def test_master_keys_rotate_without_a_byte_of_an_object(lake: Lake) -> None:
    before, plan = objects(lake), lake.planned(RUN)
    assert plan.data_key
    lake.use(Keyring([SECOND, FIRST]))
    assert rotate_data_keys(lake.ledger, dry_run=True).changed == (plan.data_key,)
    assert rotate_data_keys(lake.ledger).changed == (plan.data_key,)
    assert rotate_data_keys(lake.ledger).same == (plan.data_key,)
    lake.use(Keyring([SECOND]))
    assert lake.audit(deep=True).findings == ()
    assert (objects(lake), lake.planned(RUN)) == (before, plan)
    for key in before:
        lake.store.delete(key)
    lake.run(2)
    assert objects(lake) == before
    lake.use(Keyring([FIRST]))
    assert "names another one" in lake.audit(deep=True).damage[0].observed


def test_a_data_key_that_is_gone_or_changed_is_damage(lake: Lake) -> None:
    data_key = lake.planned(RUN).data_key
    assert data_key
    key = key_document(lake.name, data_key)
    before = lake.store.get(key) or b""
    other = new_lake()
    other.run(2)
    foreign_key = other.planned(RUN).data_key or ""
    foreign = (other.store.get(key_document(other.name, foreign_key)) or b"").replace(
        other.name.encode(), lake.name.encode()
    )
    for bad in (None, b"{}", foreign):
        lake.store.delete(key) if bad is None else lake.store.put(key, bad)
        [finding] = lake.audit(deep=True).damage
        assert (finding.kind, finding.subject) == ("unreadable", key)
    # The right name, with what another data key was wrapped to.
    lake.store.put(key, foreign.replace(foreign_key.encode(), data_key.encode()))
    [finding] = lake.audit(deep=True).damage
    assert finding.kind == "not-opened"
    assert "is damaged: master key local:" in finding.observed
    lake.store.put(key, before)
    assert lake.audit(deep=True).findings == ()


def test_an_index_is_encrypted_and_written_again_from_its_object() -> None:
    lake = new_lake(**FORMATS["block_gzip"])
    lake.run(2)
    before = objects(lake)
    gone = [o.key for o in lake.manifest(RUN).sidecars]
    assert all(key.endswith(".gz.index.json.enc") for key in gone)
    for key in gone:
        lake.store.delete(key)
    lake.logs[P0] = Range(8, 8)
    for run, entries in find_repairs(lake.context, lake.audit()).sidecars.items():
        write_sidecars(lake.context, run, [entry.key for entry in entries])
    assert objects(lake) == before
    assert lake.audit(deep=True).findings == ()


def test_dead_letters_are_encrypted_and_come_back_with_a_key_of_their_own() -> None:
    lake = new_lake(format="jsonl", content="value")
    lake.odd[P0, 3] = {"value": b"two\nlines, " + MARK}
    lake.run(2)
    letters = [key for key in objects(lake) if is_dead_letter(key)]
    assert [key.endswith(".jsonl.gz.enc") for key in letters] == [True]
    assert not [stat.key for stat in lake.store.list("") if MARK in (lake.store.get(stat.key) or b"")]
    assert lake.audit(deep=True).findings == ()
    lake.logs[P0] = Range(8, 8)
    lake.configure(
        lake.archive.model_copy(update={"store": lake.archive.store.model_copy(update={"content": "record"})})
    )
    [run_letters] = runs_with_letters(lake.context, None)
    assert forecast_replay(lake.context, run_letters).archived == 1
    replayed = lake.planned(lake.replay())
    assert replayed.data_key != lake.planned(RUN).data_key
    assert lake.manifest(replayed.run).account["dead_lettered"] == 0
    assert lake.audit(deep=True).findings == ()


def test_encryption_is_switched_on_and_off_with_the_next_plan() -> None:
    lake = new_lake(encryption="none")
    lake.run(2)
    lake.logs[P0] = Range(0, 12)
    encrypted = new_lake().archive.store.encryption
    plain, store = lake.archive, lake.archive.store
    lake.configure(plain.model_copy(update={"store": store.model_copy(update={"encryption": encrypted})}))
    lake.run(3)
    lake.logs[P0] = Range(0, 16)
    # The master key stays, for what is encrypted already.
    client = {"client": {"connection": "master_key", "encrypt": False}}
    off = type(encrypted).model_validate(client)
    lake.configure(plain.model_copy(update={"store": store.model_copy(update={"encryption": off})}))
    lake.run(4)
    assert [lake.planned(hour(n).id).data_key is None for n in (2, 3, 4)] == [True, False, True]
    assert lake.audit(deep=True).findings == ()


def test_an_attempt_after_retention_writes_another_object_that_can_be_read() -> None:
    class Killed(BaseException):
        """The process is dead."""

    class Dying(MemoryStore):
        deadly = True

        def complete_upload(self, upload: Any) -> str:
            if self.deadly:
                self.deadly = False
                raise Killed
            return super().complete_upload(upload)

    lake = new_lake(Dying(uuid.uuid4().hex), format="jsonl", content="record")
    lake.configure(lake.archive.choosing({"lost_offsets": "record_loss"}))
    with pytest.raises(Killed):
        lake.run(2)
    lake.logs[P0] = Range(1, 8)
    lake.run(2)
    assert lake.manifest(RUN).account["lost"] == 1
    assert len(printed(lake)) == 7
    assert lake.audit(deep=True).damage == ()


def test_a_run_to_be_encrypted_without_a_key_writes_nothing() -> None:
    lake = new_lake()
    lake.run(2, until="planned")
    job = lake.job()
    plan = lake.planned(RUN)
    lake.store.put(f"_ledger/{lake.name}/line/000000000001.json", plan.model_copy(update={"data_key": None}).to_json())
    lake.store.put(f"_ledger/{lake.name}/runs/{RUN}/plan.json", plan.model_copy(update={"data_key": None}).to_json())
    with pytest.raises(PermanentError, match="is to be encrypted, but its plan has no data key"):
        job.run(RUN)
    assert not objects(lake)


def test_the_doctor_tries_the_master_key() -> None:
    lake = new_lake()
    lake.run(2)
    before = {stat.key for stat in lake.store.list("")}
    [check] = check_encryption(lake.ledger)
    assert (check.severity, check.observed) == (
        "ok",
        f"master key {FIRST.name} wraps and opens data keys; the ledger has 1",
    )
    assert {stat.key for stat in lake.store.list("")} == before
    lake.use(Keyring([SECOND]))
    [check] = tried("encryption", lambda: check_encryption(lake.ledger))
    assert check.severity == "problem"
    assert "add the earlier secret to `previous_secrets`" in check.observed


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (
            {
                "timestamp": {"from": "value", "path": "n", "missing": "bad_record"},
                "source": {"value": {"decode": "json"}},
            },
            "value.n is (not shown: the archive is encrypted), expected",
        ),
        (
            {"transform": {"mapper": "tests.support.mapped:in_a_list"}, "source": {"value": {"decode": "string"}}},
            "cannot be of type string: (not shown: the archive is encrypted)",
        ),
    ],
)
def test_the_reason_of_a_bad_record_has_no_value(section: dict[str, Any], reason: str) -> None:
    odd = {(P0, n): {"value": b'{"n": "%s"}' % MARK} for n in range(2)}
    lake = Lake(
        MemoryStore(uuid.uuid4().hex), {P0: Range(0, 2)}, CLIENT, {"bad_record": "fail"}, odd, keyring=Keyring([FIRST])
    )
    source = {"topics": [P0.topic], "settle": 0, **section.get("source", {})}
    store = {"url": "memory://unused", "format": "jsonl", **CLIENT}
    lake.configure(Archive.model_validate({"archive": lake.name, "store": store, **section, "source": source}))
    with pytest.raises(PermanentError) as raised:
        lake.run(2)
    assert reason in str(raised.value)
    assert MARK.decode() not in str(raised.value)

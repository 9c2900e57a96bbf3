"""drain.c beside the Python that makes an object of each message: one gives what the other gives."""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from ctypes import byref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.kafka import messages as objects
from kafka_archiver.kafka.drain import library as native
from kafka_archiver.kafka.drain.client import DrainConsumer
from kafka_archiver.kafka.drain.handle import is_possible
from kafka_archiver.kafka.drain.library import Columns
from kafka_archiver.kafka.drain.messages import DrainedMessages
from kafka_archiver.kafka.messages import MessageBatch, Messages
from kafka_archiver.records import vectors
from kafka_archiver.records.native import load as loading
from kafka_archiver.records.native.compile import compile_source
from kafka_archiver.records.native.load import Binary
from tests.support.fake_librdkafka import FakeLibrdkafka, Methods, Odd
from tests.support.waiting import until

needs_binary = pytest.mark.skipif(native.library() is None, reason=native.why_not())
LONG = st.binary(min_size=30, max_size=30).map(lambda part: 100 * part)
BYTES = st.one_of(st.none(), st.binary(max_size=40), LONG)
NAMES = st.one_of(st.text(max_size=5).map(str.encode), st.sampled_from([b"\xff", b"a\0b", b"\xed\xa0\x80", b"h" * 500]))
TIMES = st.tuples(st.sampled_from([1, 2]), st.integers(-1, 2**62)) | st.just((0, 0))
CODES = st.sampled_from([KafkaError._PARTITION_EOF, KafkaError._BAD_MSG, KafkaError._AUTO_OFFSET_RESET, 3])


@pytest.fixture(scope="module", autouse=True)
def _odd_headers() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "Message", Methods())
        yield


@st.composite
def messages(draw: st.DrawFn, most: int = 25) -> list[Odd]:
    """Return records with rising offsets, and errors among them."""
    number = 0
    odd = []
    for error in draw(st.lists(st.none() | st.none() | CODES, max_size=most)):
        number += draw(st.integers(1, 3))
        if error is not None:
            odd.append(Odd(offset=number, error=error))
            continue
        headers = draw(st.lists(st.tuples(NAMES, BYTES), max_size=4))
        odd.append(Odd(offset=number, value=draw(BYTES), key=draw(BYTES), headers=headers, time=draw(TIMES)))
    return odd


def take(taken: MessageBatch, rounds: list[int]) -> None:
    for number in rounds:
        taken.more(number, 0)


def takers(odd: list[Odd]) -> tuple[Messages, DrainedMessages, FakeLibrdkafka]:
    """Return takers of the same messages."""
    waiting = [message.message() for message in odd]

    def consume(number: int, timeout: float) -> list[object]:
        some = waiting[:number]
        del waiting[:number]
        return some

    fake = FakeLibrdkafka(odd)
    return Messages(consume), DrainedMessages(fake.library, fake.consume, len(odd), 1), fake


@needs_binary
@given(messages(), st.lists(st.integers(1, 9), max_size=6), st.booleans(), st.data())
def test_both_give_the_same_of_odd_messages(
    odd: list[Odd], rounds: list[int], whole: bool, data: st.DataObject
) -> None:
    python, drained, fake = takers(odd)
    with closing(drained):
        for number in rounds:
            assert python.more(number, 0) == drained.more(number, 0)
        assert len(python) == len(drained)
        assert python.offsets.tolist() == drained.offsets.tolist()
        assert python.counted == drained.counted
        assert python.uncounted <= drained.uncounted
        assert [(f[0], f[1].code(), f[1].str(), *f[2:]) for f in python.faults] == [
            (f[0], f[1].code(), f[1].str(), *f[2:]) for f in drained.faults
        ]
        count = data.draw(st.integers(0, len(drained.offsets)), label="count")
        batches = drained.batches(count, whole)
        if count:
            assert set(python.places(count)) == set(drained.places(count))
    # What is given back is overwritten: batches have memory of their own.
    assert set(fake.dropped[: len(python)]) <= {1}
    assert not any(fake.dropped[len(python) :])
    for batch in batches:
        batch.validate(full=True)
    assert batches == python.batches(count, whole)


@needs_binary
@given(messages(most=8), st.integers(0, 3000), st.booleans())
def test_what_one_batch_cannot_hold_comes_in_several(odd: list[Odd], most: int, whole: bool) -> None:
    _, drained, _ = takers(odd)
    with closing(drained), pytest.MonkeyPatch.context() as patch:
        take(drained, [len(odd)])
        count = len(drained.offsets)
        [expected] = drained.batches(count, whole)
        patch.setattr(vectors, "MOST", most)
        try:
            batches = drained.batches(count, whole)
        except OverflowError:
            return
    assert pa.Table.from_batches([b.select(expected.schema.names[:5]) for b in batches]).combine_chunks() == (
        pa.Table.from_batches([expected.select(expected.schema.names[:5])]).combine_chunks()
    )


@needs_binary
@given(messages(most=8), st.integers(0, 40), st.data())
def test_a_column_that_is_too_small_is_an_answer_and_never_a_write(
    odd: list[Odd], most: int, data: st.DataObject
) -> None:
    _, drained, fake = takers(odd)
    with closing(drained):
        take(drained, [len(odd)])
        count = len(drained.offsets)
        columns = Columns(most=count)
        guards = []

        def memory(size: int) -> int:
            guards.append((np.full(size + 16, 7, np.uint8), size))
            guards[-1][0][:size] = 0
            return int(guards[-1][0].ctypes.data)

        columns.offsets, columns.times = memory(8 * count), memory(8 * count)
        columns.types, columns.header_ends = memory(4 * count), memory(4 * count + 4)
        for column in (columns.values, columns.keys, columns.names, columns.headers):
            rows = data.draw(st.integers(0, most))
            column.most.rows, column.most.bytes = rows, data.draw(st.integers(0, 4000))
            column.present, column.ends = memory(rows // 8 + 1), memory(4 * rows + 4)
            column.bytes = memory(column.most.bytes)
        fake.library.drain.copy(byref(fake.library.table), drained._records, count, byref(columns))
    assert all((guard[size:] == 7).all() for guard, size in guards)


@needs_binary
def test_a_record_of_another_partition_is_seen_wherever_it_is() -> None:
    for stranger in (Odd(offset=2, partition=2), Odd(offset=2, topic="u")):
        _, drained, _ = takers([Odd(offset=1), stranger, Odd(offset=3)])
        with closing(drained):
            take(drained, [3])
            assert set(drained.places(3)) == {("t", 1), (stranger.topic, stranger.partition)}
            assert drained.places(1) == [("t", 1)]


@needs_binary
def test_it_comes_with_a_job_as_a_zip(tmp_path: Path) -> None:
    from kafka_archiver.orchestration.submit.package import build_package

    code = "from kafka_archiver.kafka.drain import library as l; print(l.__file__, l.library(), l.why_not())"
    package = build_package(tmp_path)
    output = subprocess.check_output([sys.executable, "-c", code], env={"PYTHONPATH": str(package)}, text=True)
    assert output.startswith(str(package))
    assert "<kafka_archiver.kafka.drain.library.Library" in output
    with zipfile.ZipFile(package) as archive:
        assert sum(name.endswith((".so", ".c")) for name in archive.namelist()) == 4


def test_without_a_compiler_the_package_says_why_and_reads_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "drain.c").write_bytes(Path(native.__file__).with_name("drain.c").read_bytes())
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(OSError, match="no-such-compiler"):
        compile_source(tmp_path / "drain.c")
    assert [path.name for path in tmp_path.iterdir()] == ["drain.c"]
    monkeypatch.setattr(loading, "files", lambda _: tmp_path)
    binary = Binary(native._open)
    assert binary.library() is None
    assert binary.why_not().startswith("this installation has no drain-")
    monkeypatch.setenv(loading.SWITCH, "python")
    assert binary.why_not().startswith("this installation")  # It opens once.
    assert Binary(native._open).why_not() == "KAFKA_ARCHIVER_READER is python"


@needs_binary
@pytest.mark.parametrize("version", [0x010900FF, 0x030000FF])
def test_another_major_version_of_librdkafka_is_refused(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "MAJOR", version >> 24)
    binary = Binary(native._open)
    assert binary.library() is None
    assert f"expected {version >> 24}.x" in binary.why_not()


@pytest.mark.parametrize(
    ("properties", "possible"),
    [
        ({"sasl.mechanism": "PLAIN"}, True),
        ({"plugin.library.paths": "monitoring-interceptor"}, False),
        ({"sasl.oauthbearer.metadata.authentication.type": "azure_imds"}, True),
        ({"sasl.oauthbearer.metadata.authentication.type": "aws_iam"}, False),
        ({"oauth_cb": print}, False),
    ],
)
def test_what_needs_python_of_confluent_kafka_is_left_to_it(properties: dict[str, object], possible: bool) -> None:
    assert is_possible({"group.id": "g", "check.crcs": True, **properties}) == possible


@needs_binary
def test_librdkafka_s_errors_reach_who_asks() -> None:
    functions = native.library()
    assert functions is not None
    errors: list[KafkaError] = []
    properties = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
    with closing(DrainConsumer(functions, properties, errors.append)) as consumer:
        with closing(consumer.taking(1, 1)) as taken:
            until(lambda: not taken.more(1, 0.1) and errors)
        assert errors[0].code() == KafkaError._TRANSPORT
    # A second time does no harm.
    consumer.close()

"""Text and bytes: what tells values apart, and what is refused because nothing would."""

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.audit.readers import READERS
from kafka_archiver.messages.errors import BadRecordError, ConfigError, IntegrityError
from kafka_archiver.model.object_keys import split_object_key
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats import get_format, resolve
from kafka_archiver.records.formats.base import SCHEMAS, Target
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.writer.finish_uploads import complete
from tests.support.chunks import Row, batch, chunk_of, cut, new_store, write

pytestmark = pytest.mark.contract

anytime = settings(deadline=None)
VALUES = st.lists(st.none() | st.text("ab\r\n", max_size=6).map(str.encode), max_size=8)


def target_of(name: str, **options: Any) -> Target:
    resolved = resolve(Settings(format=name, codec="none", options=options))
    return Target(topic="t", partition=0, key="k", settings=resolved, schema=SCHEMAS["value"])


def rows_of(values: list[bytes | None]) -> list[Row]:
    return [Row(n, n, value=value) for n, value in enumerate(values)]


def encode(target: Target, values: list[bytes | None]) -> bytes:
    encoder = get_format(target.settings.format).encoder(target)
    pieces = [*encoder.write(batch(rows_of(values))), *encoder.finish()]
    return b"".join(map(bytes, pieces))


def decode(target: Target, data: bytes) -> list[bytes | None]:
    batches = get_format(target.settings.format).read(io.BytesIO(data), target)
    return [value for item in batches for value in item.column("value").to_pylist()]


def counted(target: Target, data: bytes) -> int | None:
    values = READERS[target.settings.format].values
    assert values
    return values(io.BytesIO(data), target.settings)


@anytime
@given(VALUES, st.text("ab\n", min_size=1, max_size=3))
def test_text_has_every_value_that_a_reader_finds_again(values: list[bytes | None], separator: str) -> None:
    target = target_of("text", separator=separator)
    stage, marks, end = get_format("text").stage(target.settings), Marks(), separator.encode()
    assert stage
    stage(batch(rows_of(values)), marks)
    assert set(marks.rejected) == {n for n, v in enumerate(values) if v and (v + end).split(end) != [v, b""]}
    kept = [value or b"" for n, value in enumerate(values) if n not in marks.rejected]
    data = encode(target, [*kept])
    assert data == b"".join(value + end for value in kept)
    assert decode(target, data) == kept
    assert counted(target, data) == len(kept)


def test_a_value_of_two_lines_is_a_bad_record_with_a_way_out() -> None:
    text = resolve(Settings(format="text"))
    with pytest.raises(BadRecordError, match=r"separator '\\n'.*`store.options.separator`.*`store.content: record`"):
        write(chunk_of(0, 2), cut(rows_of([b"one", b"two\nlines"]), 1), new_store(), **dict(text))


@anytime
@given(VALUES)
def test_bytes_are_values_as_they_are(values: list[bytes | None]) -> None:
    whole = b"".join(value or b"" for value in values)
    assert encode(target_of("bytes"), values) == whole
    assert counted(target_of("bytes"), whole) is None
    lines = encode(target_of("bytes", separator="\n"), values)
    assert lines == b"".join((value or b"") + b"\n" for value in values)


@anytime
@given(VALUES)
def test_lengths_tell_values_apart_and_null_from_empty(values: list[bytes | None]) -> None:
    target = target_of("bytes", framing="length")
    data = encode(target, values)
    assert decode(target, data) == values
    assert counted(target, data) == len(values)
    if values:
        assert data[:4] == (b"\xff" * 4 if values[0] is None else len(values[0]).to_bytes(4))


@pytest.mark.parametrize("damaged", [b"\x00\x00\x00\x02a", b"\x00\x00", b"\xff\xff\xff\xfe"])
def test_lengths_that_do_not_fit_are_found_out(damaged: bytes) -> None:
    target = target_of("bytes", framing="length")
    with pytest.raises(IntegrityError, match=r"damaged|in the middle of a value"):
        decode(target, damaged)


def test_text_without_its_last_separator_is_found_out() -> None:
    with pytest.raises(IntegrityError, match="k ends in the middle of a value"):
        decode(target_of("text"), b"a\nb")
    with pytest.raises(ValueError, match="the last value has no separator"):
        counted(target_of("text"), b"a\nb")


def test_one_object_a_record_with_an_extension_of_its_own() -> None:
    single = resolve(
        Settings(format="bytes", codec="gzip", options={"extension": ".jpeg"}, chunk_records=1, layout="hourly")
    )
    store = new_store()
    results = [write(chunk_of(n, n + 1), cut([Row(n, 0, value=b"%d" % n)], 1), store, **dict(single)) for n in (3, 4)]
    keys = [entry.key for entry in complete(results, store)]
    assert [key.rpartition("/")[2] for key in keys] == [f"orders+3+{n:020d}.jpeg.gz" for n in (3, 4)]
    places = [split_object_key(key) for key in keys]
    assert [place and place.start for place in places] == [3, 4]


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("text", {"separator": ""}, "`store.options.separator`: expected"),
        ("bytes", {"extension": "bin"}, "`store.options.extension`: expected"),
        ("bytes", {"extension": "./../x"}, "`store.options.extension`: expected"),
        ("bytes", {"extension": ".a/b"}, "`store.options.extension`: expected"),
        ("bytes", {"separator": ",", "framing": "length"}, "expected a separator or framing, found both"),
    ],
)
def test_an_option_that_cannot_work_is_refused(name: str, wrong: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(Settings(format=name, options={**wrong}))
    assert message in str(caught.value)

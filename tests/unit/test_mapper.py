"""Mappers: each record becomes 0..n rows, is filtered or rejected, whatever the batches; nothing is lost unseen."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.messages.foreign_text import without_marks
from kafka_archiver.model.schemas import Schema
from kafka_archiver.model.settings import Settings
from kafka_archiver.model.transforms import Mapper, Transform
from kafka_archiver.records.pipeline.runner import Runner
from kafka_archiver.records.pipeline.stages import stages_of
from kafka_archiver.records.pipeline.transform.base import BatchOrigin
from kafka_archiver.records.pipeline.transform.code import digest_of, require_function
from kafka_archiver.records.pipeline.transform.python_values import PythonColumn, Unreadable, python
from tests.support.chunks import Row, batch, chunk_of, write
from tests.support.mappers import write_module
from tests.support.typed import VALUES as TYPED_VALUES
from tests.support.typed import column_of, named, rows_of, values_of

pytestmark = pytest.mark.unit

# A value is a list of what becomes of it: texts are rows, "!" raises.
CODE = """
import asyncio

def parts(value):
    found = (value or b"").decode().split(",") if value else []
    if "!" in found:
        raise ValueError(f"no {value.decode()} at {object()}")
    return [part.encode() for part in found]

def one(record):
    return [record.replace(value=part, key=b"k" + part) for part in parts(record.value)]

def lazily(record):
    for part in parts(record.value):
        yield record.replace(value=part, key=b"k" + part)

async def waiting(record):
    # The later a record is, the earlier it is done.
    for _ in range(20 - record.offset % 20):
        await asyncio.sleep(0)
    return one(record)

async def asyncly(record):
    for part in parts(record.value):
        await asyncio.sleep(0)
        yield record.replace(value=part, key=b"k" + part)

def whole(batch):
    rows = [(offset, part) for offset, value in zip(batch["offset"].to_pylist(), batch["value"].to_pylist())
            for part in parts(value)]
    if not rows:
        return None
    offsets, values = zip(*rows)
    keys, values = [pa.array(column, pa.binary()) for column in ([b"k" + value for value in values], values)]
    return pa.record_batch([pa.array(offsets, pa.int64()), values, keys], ["offset", "value", "key"])

async def whole_async(batch):
    found = whole(batch)
    return found and pa.Table.from_batches([found])
"""
FUNCTIONS = {"one": "record", "lazily": "record", "waiting": "record", "asyncly": "record",
             "whole": "batch", "whole_async": "batch"}  # fmt: skip
VALUES = st.lists(st.none() | st.lists(st.sampled_from(["a", "b", "!"]), max_size=3).map(",".join), max_size=12)


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_module(tmp_path_factory.mktemp("mappers"), CODE)


def runner(mapper: Mapper, **settings: Any) -> Runner:
    options = {"content": "record", "format": "jsonl", **settings}
    return Runner(stages_of(Settings(transform=Transform(mapper=mapper), **options), (), BatchOrigin("orders", 3)))


def rows(values: list[str | None]) -> list[Row]:
    return [Row(5 + 2 * n, n, 1, b"old", (v and v.encode()) or None, (("h", b"x"),)) for n, v in enumerate(values)]


@pytest.mark.parametrize("function", FUNCTIONS)
@given(values=VALUES, cuts=st.lists(st.integers(0, 12), max_size=3))
def test_the_account_is_exact_whatever_the_batches(
    module: str, function: str, values: list[str | None], cuts: list[int]
) -> None:
    mapping = runner(Mapper(function=f"{module}:{function}", by=FUNCTIONS[function]))  # type: ignore[arg-type]
    records = rows(values)
    edges = [0, *sorted({min(cut, len(records)) for cut in cuts}), len(records)]
    kept: list[tuple[Any, ...]] = []
    rejected: dict[int, str] = {}
    for start, end in pairwise(edges):
        if start < end:
            passed = mapping.run(batch(records[start:end]))
            rejected |= passed.rejected
            kept += [tuple(row.values()) for row in passed.kept.to_pylist()]
    parts = {row.offset: (row.value or b"").decode().split(",") if row.value else [] for row in records}
    bad = {offset for offset, names in parts.items() if "!" in names}
    expected = [(row, part.encode()) for row in records if row.offset not in bad for part in parts[row.offset]]
    headers = [{"key": "h", "value": b"x"}]
    assert kept == [(row.offset, row.timestamp, 1, b"k" + part, part, headers) for row, part in expected]
    assert rejected.keys() == bad
    for offset, reason in rejected.items():
        value = ",".join(parts[offset])
        # The same in every process.
        assert reason == (f"the mapper {module}:{function} raised ValueError: no {value} at <object object at 0x…>")
    filtered = {offset for offset, names in parts.items() if not names}
    assert (mapping.counts.rejected, mapping.counts.filtered, mapping.counts.rows) == (
        len(bad),
        len(filtered),
        len(expected),
    )
    assert mapping.counts.archived == len(records) - len(bad) - len(filtered)


ODD = """
def text(record): return "x"
def mapping(record): return {"value": b"x"}
def number(record): return 7
def strange(record): return [record.replace(value=b"x"), b"y"]
def other(record): return Record("orders", 3, record.offset + 1, record.timestamp, 0, None, b"", ())
def later(record): return Record("orders", 3, record.offset, 7, 0, None, b"", ())
def text_value(record): return record.replace(value="x")
def pair(record): return record.replace(headers=[("a", b"b", b"c")])
def header(record): return record.replace(headers=[("a", "text")])
def leaving(record): raise SystemExit(3)
def silent(record): raise KeyError()
def long(record): raise ValueError("first\\n  second")
def unordered(batch): return batch.take(pa.array([1, 0])) if batch.num_rows > 1 else batch.drop_columns(["offset"])
def beyond(batch): return pa.record_batch([pa.array([99])], ["offset"])
def more(batch): return batch.append_column("mine", batch["offset"])
def retimed(batch): return batch.set_column(3, "timestamp", pa.nulls(batch.num_rows, pa.int64()))
def a_list(batch): return [1]
"""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("text", "TypeError: expected None, a Record (record.replace(value=…)) or an iterable of Records, found str"),
        ("mapping", "or an iterable of Records, found dict"),
        ("number", "or an iterable of Records, found int"),
        ("strange", "expected Records (record.replace(value=…)), found bytes"),
        ("other", "ValueError: expected a record of offset 1 with its place and time, found 2"),
        ("later", "expected a record of offset 1 with its place and time"),
        ("text_value", "returned a record that cannot be stored: value is of bytes, found str; encode text"),
        ("pair", "returned a record that cannot be stored: headers[] is a mapping of fields, found tuple"),
        ("header", "headers[].value is of bytes, found str"),
        ("leaving", "raised SystemExit: 3"),
        ("silent", "raised KeyError"),
        ("long", "raised ValueError: first second"),
        ("unordered", "expected a column 'offset' of 64-bit integers"),
        ("beyond", "expected only offsets of the given batch"),
        ("more", "ValueError: expected the columns topic, partition, offset, timestamp, timestamp_type, key, value, "),
        ("retimed", "expected the column 'timestamp' as it was"),
        ("a_list", "TypeError: expected a RecordBatch, a Table or None, found list"),
    ],
)
def test_what_a_mapper_must_not_return_rejects_the_record(tmp_path: Path, function: str, message: str) -> None:
    by_batch = function in ("unordered", "beyond", "more", "retimed", "a_list")
    mapper = Mapper(function=f"{write_module(tmp_path, ODD)}:{function}", by="batch" if by_batch else "record")
    passed = runner(mapper).run(batch([Row(1, 5), Row(2, 5)]))
    assert (passed.kept.num_rows, sorted(passed.rejected)) == (0, [1, 2])
    assert message in passed.rejected[1]


@pytest.mark.parametrize("head", ["def f(one)", "async def f(one)", "def f(batch)"])
def test_a_mapper_without_memory_rejects_no_record(tmp_path: Path, head: str) -> None:
    name = write_module(tmp_path, f"{head}: raise MemoryError\n")
    mapper = Mapper(function=f"{name}:f", by="batch" if "batch" in head else "record")
    with pytest.raises(MemoryError):
        runner(mapper).run(batch([Row(1, 5), Row(2, 5)]))


TYPED = """
import json
def parsed(record):
    return record.replace(value=json.loads(record.value))
def columns(batch):
    rows = [json.loads(value) for value in batch["value"].to_pylist()]
    return pa.record_batch([batch["offset"], pa.array(rows)], ["offset", "value"])
"""
COLUMNS = Schema(
    kind="JSON",
    text=json.dumps(
        [{"name": "n", "type": "int64"}, {"name": "tags", "type": "list", "items": "string"},
         {"name": "id", "type": "uuid"}, {"name": "price", "type": "decimal(5, 2)"}]
    ),
)  # fmt: skip


def test_a_mapper_makes_columns_and_loses_no_field_unseen(tmp_path: Path) -> None:
    mapper = Mapper(function=f"{write_module(tmp_path, TYPED)}:parsed", columns=COLUMNS)
    values = [
        b'{"n": 1, "tags": ["a", null], "id": "00112233-4455-6677-8899-aabbccddeeff"}',
        b'{"n": true}',
        b'{"n": 1.5}',
        b'{"nn": 1}',
        b'{"tags": "ab"}',
        b'{"n": 99999999999999999999}',
        b"[]",
        b"null",
        b'{"price": 1}',
    ]
    passed = runner(mapper, content="value", format="parquet").run(
        batch([Row(n, 5, value=v) for n, v in enumerate(values)])
    )
    assert [row["value_decoded"] for row in passed.kept.to_pylist()][:2] == [
        {
            "n": 1,
            "tags": ["a", None],
            "id": "00112233-4455-6677-8899-aabbccddeeff",
            "price": None,
        },
        None,
    ]
    texts = {offset: without_marks(reason, True) for offset, reason in passed.rejected.items()}
    reasons = {offset: text.partition("stored: ")[2] for offset, text in texts.items()}
    assert reasons.pop(5).startswith("value cannot be of type")
    assert reasons == {
        1: "value.n is of type int64, found bool",
        2: "value.n is of type int64, found float",
        3: "value has no field 'nn'; it has n, tags, id, price",
        4: "value.tags is a list, found str",
        6: "value is a mapping of fields, found list",
    }


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_row_is_what_it_was_when_the_function_yielded_it(tmp_path: Path, kind: str) -> None:
    code = """
    value, headers = {}, []
    for n in (1, 2):
        value["n"] = n
        headers.append(("h", None))
        yield record.replace(value=value, headers=headers)
"""
    module = write_module(tmp_path, f"{kind} f(record):{code}")
    mapping = runner(Mapper(function=f"{module}:f", columns=COLUMNS), content="value", metadata=("headers",))
    passed = mapping.run(batch(rows(["x"])))
    assert [(row["value_decoded"]["n"], len(row["headers"])) for row in passed.kept.to_pylist()] == [(1, 1), (2, 2)]


def test_an_error_with_half_of_a_character_is_a_reason_as_any_other(tmp_path: Path) -> None:
    name = write_module(tmp_path, "def f(record): raise ValueError('\\ud800')\n")
    result = write(
        chunk_of(5, 6), [batch(rows(["x"]))], bad_record="dead_letter",
        transform=Transform(mapper=Mapper(function=f"{name}:f")), content="record",
    )  # fmt: skip
    assert result.account.dead_lettered == 1


def test_a_batch_with_other_fields_is_refused_and_not_cast(tmp_path: Path) -> None:
    name = write_module(tmp_path, TYPED)
    few = Schema(kind="JSON", text='[{"name": "n", "type": "int32"}]')
    mapping = runner(Mapper(function=f"{name}:columns", by="batch", columns=few), content="value", format="avro")
    passed = mapping.run(
        batch(
            [Row(1, 5, value=b'{"n": 7}'), Row(2, 5, value=b'{"n": 7, "m": 1}'), Row(3, 5, value=b'{"n": 4294967296}')]
        )
    )
    assert passed.kept.column("value_decoded").to_pylist() == [{"n": 7}]
    assert "value has the fields n, found n, m" in passed.rejected[2]
    assert "value cannot be of type struct<n: int32>" in passed.rejected[3]


def test_changed_code_is_refused_and_so_is_code_that_is_not_there(tmp_path: Path) -> None:
    name = write_module(tmp_path, "def f(record): return record\n")
    helper = write_module(tmp_path, "x = 1\n")
    function, modules = f"{name}:f", (helper,)
    mapper = Mapper(function=function, modules=modules, digest=digest_of(function, modules))
    assert runner(mapper).run(batch([Row(1, 5)])).kept.num_rows == 1
    (tmp_path / f"{helper}.py").write_text((tmp_path / f"{helper}.py").read_text().replace("\n", "\r\n"))
    assert runner(mapper).run(batch([Row(1, 5)])).kept.num_rows == 1
    (tmp_path / f"{helper}.py").write_text("x = 2\n")
    with pytest.raises(PermanentError, match=rf"the code of {name}, {helper} has changed since the run was planned"):
        runner(mapper).run(batch([Row(1, 5)]))
    missing = {
        "nowhere_at_all:f": "does not find module nowhere_at_all; expected nowhere_at_all.py",
        f"{name}:g": f"module {name} has no function 'g'",
        f"{name}:pa": "is no function",
    }
    for wrong, message in missing.items():
        with pytest.raises(ConfigError, match=message):
            runner(Mapper(function=wrong)).run(batch([Row(1, 5)]))
    broken = write_module(tmp_path, "1 / 0\n")
    with pytest.raises(ConfigError, match="cannot be imported: ZeroDivisionError: division by zero"):
        runner(Mapper(function=f"{broken}:f")).run(batch([Row(1, 5)]))


def test_planning_sees_without_an_import_whether_there_is_the_function(tmp_path: Path) -> None:
    code = "1 / 0\ndef f(r): pass\nasync def g(r): pass\nif 1:\n    from x import y as h\ni = f\n"
    name = write_module(tmp_path, code)
    for function in "fghi":
        require_function("mapper", f"{name}:{function}")
    with pytest.raises(ConfigError, match=rf"{name}[.]py\) has no function 'nope'; found Record, .*f, g, h, i[.]"):
        require_function("mapper", f"{name}:nope")
    # Whatever a module gets so, nobody knows without running it.
    require_function("mapper", f"{write_module(tmp_path, 'from os.path import *')}:join")
    with pytest.raises(ConfigError, match=r"[.]py\) is not Python: .*line 4"):
        require_function("mapper", f"{write_module(tmp_path, 'def f(:')}:f")


def test_a_package_is_digested_with_all_that_it_has(tmp_path: Path) -> None:
    top = write_module(tmp_path, "").replace("mapper", "package")
    (tmp_path / top / "deep").mkdir(parents=True)
    for file in ("__init__.py", "deep/__init__.py", "deep/one.py"):
        (tmp_path / top / file).write_text("def f(r): return r\n")
    whole, single = digest_of(f"{top}:f", ()), digest_of(f"{top}.deep.one:f", ())
    (tmp_path / top / "deep/one.py").write_text("def f(r): return None\n")
    assert digest_of(f"{top}:f", ()) != whole
    assert digest_of(f"{top}.deep.one:f", ()) != single


def test_a_mapper_of_values_and_content_that_keeps_the_old_ones_do_not_go_together(tmp_path: Path) -> None:
    mapper = Mapper(function=f"{write_module(tmp_path, TYPED)}:parsed", columns=COLUMNS)
    for content in ("record", "both"):
        with pytest.raises(
            ConfigError, match=f"transform.mapper: `store.content: {content}` stores keys and values as Ka"
        ):
            runner(mapper, content=content, format="parquet")


def test_a_mapper_has_all_of_a_record_also_if_objects_have_only_values(tmp_path: Path) -> None:
    code = (
        "def f(r):\n    place = (r.topic, r.partition, r.offset, r.timestamp, r.timestamp_type, r.key, r.headers)\n"
        "    return r.replace(value=repr(place).encode())\n"
    )
    mapper = Mapper(function=f"{write_module(tmp_path, code)}:f")
    settings = Settings(content="value", format="text", transform=Transform(mapper=mapper))
    assert settings.whole_records
    kept = (
        Runner(stages_of(settings, (), BatchOrigin("orders", 3)))
        .run(batch([Row(1, 5, 1, b"k", b"v", (("h", None),))]))
        .kept
    )
    assert kept.schema.names == ["offset", "timestamp", "value"]
    assert kept.column("value").to_pylist() == [b"('orders', 3, 1, 5, 1, b'k', (('h', None),))"]


def test_an_empty_column_stays_of_its_type(tmp_path: Path) -> None:
    mapper = Mapper(function=f"{write_module(tmp_path, 'def f(r): return None')}:f", columns=COLUMNS)
    passed = runner(mapper, content="value", format="parquet").run(batch([Row(1, 5)]))
    assert passed.kept.num_rows == 0
    assert pa.types.is_struct(passed.kept.schema.field("value_decoded").type)


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        ("date", "datetime.date(2026, 1, 1)", True),
        ("date", "datetime.datetime(2026, 1, 1, 12)", False),
        ("date", "'2026-01-01'", False),
        ("timestamp[ms]", "datetime.datetime(2026, 1, 1, 0, 0, 0, 1000)", True),
        ("timestamp[ms]", "datetime.datetime(2026, 1, 1, 0, 0, 0, 1)", False),
        ("timestamp[ms]", "datetime.date(2026, 1, 1)", False),
        ("timestamp[us]", "datetime.datetime(2026, 1, 1, 0, 0, 0, 1)", True),
        ("decimal(3, 1)", "decimal.Decimal('1.25')", False),
        ("decimal(3, 1)", "decimal.Decimal('1.2')", True),
        ("float64", "1", True),
        ("int8", "300", False),
        ("string", "7", False),
        ("binary", "'text'", False),
    ],
)
def test_a_value_fits_its_column_as_it_is_or_not_at_all(tmp_path: Path, kind: str, value: str, fits: bool) -> None:
    code = f"import datetime, decimal\ndef f(r): return r.replace(value={{'a': {value}}})\n"
    columns = Schema(kind="JSON", text=json.dumps([{"name": "a", "type": kind}]))
    mapper = Mapper(function=f"{write_module(tmp_path, code)}:f", columns=columns)
    passed = runner(mapper, content="value", format="parquet").run(batch([Row(1, 5)]))
    assert passed.kept.num_rows == fits, passed.rejected


UUID_OF_AVRO = named("value", pa.binary(16), "", logicalType="uuid")
# No decoder makes times of nanoseconds, for which Python has no type.
DECODED = TYPED_VALUES.filter(lambda field: "time64[ns]" not in str(field.type)) | st.sampled_from(
    [
        UUID_OF_AVRO,
        pa.field("value", pa.list_(UUID_OF_AVRO.with_name("item"))),
        pa.field("value", pa.map_(pa.string(), UUID_OF_AVRO)),
        pa.field("value", pa.struct([UUID_OF_AVRO.with_name("id")])),
    ]
)


@given(st.data())
def test_a_mapper_may_give_back_what_it_gets(data: st.DataObject) -> None:
    field = data.draw(DECODED)
    before = column_of(field, data.draw(st.lists(values_of(field), min_size=1, max_size=3)))
    column, values = PythonColumn(field), python(before.column(0))
    if any(isinstance(value, Unreadable) for value in values):
        return
    after = pa.record_batch([column.array([column.converted(value) for value in values])], ["value"])
    assert str(rows_of([after])) == str(rows_of([before]))

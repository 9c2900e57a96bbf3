"""`where`, `select` and a PySpark function behind each reader: exact accounts, the same bytes, on real services."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
import pytest

from kafka_archiver.audit.inspection import audit
from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.context.local_spark import ask_spark
from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.model.object_keys import is_dead_letter
from kafka_archiver.model.transforms import Sql
from kafka_archiver.records.pipeline.transform.questions import SqlQuestion
from kafka_archiver.records.pipeline.transform.spark_types import field_of
from kafka_archiver.spark import failing_records, sql_tasks
from kafka_archiver.spark.analysis import answer
from kafka_archiver.spark.sql import prepare
from kafka_archiver.work.dead_letters import replay_letters
from tests.contract.test_docs_of_transforms import BLOCKS, EXAMPLES
from tests.support.archiver import Archiver, Services, hour
from tests.support.chunks import path_of
from tests.support.mappers import write_module
from tests.support.topics import DAY, HOUR, Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

COUNT = 250
COLUMNS = {"decode": "json", "schema": [{"name": "n", "type": "int32"}, {"name": "s", "type": "string"},
           {"name": "tags", "type": "list", "items": "string"}]}  # fmt: skip


def value(n: int) -> bytes | None:
    """Every ninth is null, every eleventh no JSON; `s` is a number, except for every seventh."""
    if n % 9 == 4:
        return None
    if n % 11 == 5:
        return b"{"
    return json.dumps({"n": n, "s": "x" if n % 7 == 2 else str(n), "tags": ["a", "b", "c"][: n % 4]}).encode()


def archiver_of(services: Services, spark: "SparkSession", reader: str, transform: Any, **source: Any) -> Archiver:
    archiver = services.archive(
        settings={"chunk_records": 100, "format": "jsonl", "metadata": ["offset"]},
        policies={"bad_record": "dead_letter"},
        source={"reader": reader, "value": COLUMNS, **source},
        more={"transform": transform},
    )
    archiver.produce(
        [Record(0, DAY + n % 3 * HOUR, value(n), b"\xff" if n == 105 else b"k%d" % n) for n in range(COUNT)]
    )
    archiver.context = replace(archiver.context, spark=lambda question: answer(spark, question))
    return archiver


def rows(archiver: Archiver) -> dict[int, list[Any]]:
    by_offset: dict[int, list[Any]] = {}
    for lines in archiver.lines().values():
        for line in lines:
            if "error" not in line:
                by_offset.setdefault(line["offset"], []).append(line)
    return by_offset


def fate(n: int) -> str:
    """Return the fate of a record by `where: value.s + 1 > 100`, and the key as text."""
    if n % 9 == 4:
        return "filtered"
    if n % 11 == 5 or n % 7 == 2 or n == 105:
        return "dead_lettered"
    return "archived" if n > 99 else "filtered"


@pytest.mark.parametrize("reader", ["native", "spark"])
def test_where_and_select_keep_an_exact_account(services: Services, spark: "SparkSession", reader: str) -> None:
    select = ["* EXCEPT (tags)", "upper(array_join(value.tags, '-')) AS joined", "CAST(key AS string) AS key"]
    transform = {"where": "value.s + 1 > 100", "select": select}
    archiver = archiver_of(services, spark, reader, transform)
    archiver.run(hour(1))
    fates = [fate(n) for n in range(COUNT)]
    assert archiver.account(hour(1)) == {name: fates.count(name) for name in set(fates)}
    stored = rows(archiver)
    assert sorted(stored) == [n for n in range(COUNT) if fate(n) == "archived"]
    tags = ["a", "b", "c"]
    for n, [row] in stored.items():
        assert row == {
            "offset": n, "n": n, "s": str(n), "joined": "-".join(tags[: n % 4]).upper(), "key": f"k{n}",
        }  # fmt: skip
    errors = [line["error"] for lines in archiver.lines().values() for line in lines if "error" in line]
    assert sum("Spark raised an error for this record in `transform.where`" in error for error in errors) > 20
    assert sum("text of this record that is not UTF-8" in error for error in errors) == 1
    report = audit(archiver.archive, archiver.context.store, archiver.now[0], deep=True)
    assert (report.verdict, report.findings) == ("clean", ())
    before = {key: archiver.context.store.get(key) for key in archiver.objects()}
    archiver.context.store.delete(min(before))
    archiver.run(hour(1))
    assert {key: archiver.context.store.get(key) for key in archiver.objects()} == before


def test_both_readers_write_the_same_bytes_and_where_alone_keeps_the_records(
    services: Services, spark: "SparkSession"
) -> None:
    stored = []
    for reader in ("native", "spark"):
        archiver = archiver_of(services, spark, reader, {"where": "value.n % 2 = 0 and offset < 200"})
        archiver.run(hour(1))
        # Dead letters name the topic, which is another one.
        keys = [key for key in archiver.objects() if not is_dead_letter(key)]
        stored.append({key.partition("+")[2]: archiver.context.store.get(key) for key in keys})
        assert set(rows(archiver)) == {n for n in range(0, 200, 2) if n % 9 != 4 and n % 11 != 5}
    assert stored[0] == stored[1]


@pytest.mark.parametrize("reader", ["native", "spark"])
def test_many_partitions_of_two_topics_share_tasks(services: Services, spark: "SparkSession", reader: str) -> None:
    topics = [services.topic([Record(n % 5, DAY, value(n), b"k") for n in range(COUNT)], 6) for _ in range(2)]
    archiver = services.archive_of(
        *topics,
        settings={"chunk_records": 20, "metadata": ["offset", "partition"]},
        policies={"bad_record": "skip"},
        source={"reader": reader, "value": COLUMNS},
        more={"transform": {"where": "value.n % 2 = 0", "select": ["value.n", "topic"]}},
    )
    archiver.context = replace(archiver.context, spark=lambda question: answer(spark, question))
    archiver.run(hour(1))
    stored = sorted((line["topic"], line["n"]) for lines in archiver.lines().values() for line in lines)
    good = [n for n in range(0, COUNT, 2) if n % 9 != 4 and n % 11 != 5]
    assert stored == sorted((topic, n) for topic in topics for n in good)
    assert archiver.account(hour(1)) == {"archived": 2 * len(good), "filtered": 2 * (COUNT - len(good))}
    assert audit(archiver.archive, archiver.context.store, archiver.now[0], deep=True).findings == ()


@pytest.mark.parametrize("reader", ["native", "spark"])
def test_each_attempt_runs_on_the_java_of_the_plan(
    services: Services, spark: "SparkSession", reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned_with(java: str) -> Archiver:
        archiver = archiver_of(services, spark, reader, {"where": "value.n = 7"})
        ask = lambda question: answer(spark, question).model_copy(update={"java": java})  # noqa: E731
        archiver.context = replace(archiver.context, spark=ask)
        return archiver

    # As plans of earlier releases.
    planned = planned_with("")
    planned.run(hour(1))
    assert list(rows(planned)) == [7]
    planned = planned_with("99")
    running = r"the run was planned with Java 99, and {} has Java 17, .* `airflow archive rebuild .* --run 2026\S+`$"
    with pytest.raises(PermanentError, match=running.format("Spark's driver")):
        planned.run(hour(1))
    monkeypatch.setattr(sql_tasks, "java_of", lambda spark: "99")
    with pytest.raises(PermanentError, match=running.format("an executor of Spark")):
        planned.run(hour(1))
    assert not planned.objects()
    assert planned.uploads() == []


def test_a_function_drops_and_multiplies_rows(services: Services, spark: "SparkSession", tmp_path: Path) -> None:
    code = (
        "from datetime import datetime\nfrom pyspark.sql import functions as F\n"
        "def tagged(frame):\n"
        "    return frame.where('n < 200').withColumn('tag', F.explode('tags')).drop('tags')\n"
        "def counted(frame):\n    return frame.groupBy('n').count()\n"
        "def dated(frame):\n    return frame.withColumn('at', F.lit(datetime.now()))\n"
        "def acting(frame):\n    return frame.withColumn('all', F.lit(frame.count()))\n"
        "def asserted(frame):\n    def checked(n):\n        assert n != 57, 'it is 57\\nor not'\n"
        "    return frame.withColumn('c', F.udf(checked, 'string')('n'))\n"
    )
    name = write_module(tmp_path, code)
    archiver = archiver_of(services, spark, "native", {"function": f"{name}:tagged"})
    archiver.run(hour(1))
    good = [n for n in range(200) if n % 9 != 4 and n % 11 != 5 and n % 4]
    stored = rows(archiver)
    assert sorted(stored) == good
    for n in good:
        assert [row["tag"] for row in stored[n]] == ["a", "b", "c"][: n % 4]
    assert archiver.manifest(hour(1)).rows == sum(n % 4 for n in good)
    bad = sum(n % 9 != 4 and n % 11 == 5 for n in range(COUNT))
    assert archiver.account(hour(1)) == {
        "archived": len(good),
        "dead_lettered": bad,
        "filtered": COUNT - len(good) - bad,
    }
    assert audit(archiver.archive, archiver.context.store, archiver.now[0], deep=True).findings == ()
    refused = archiver_of(services, spark, "native", {"function": f"{name}:counted"})
    with pytest.raises(ConfigError, match="no column `_kafka`"):
        refused.run(hour(1))
    work = archiver.plan(hour(2))
    assert work.archive == ()
    refused = archiver_of(services, spark, "native", {"function": f"{name}:dated"})
    with pytest.raises(ConfigError, match="made two different frames when it was called twice"):
        refused.plan(hour(1))
    acting = archiver_of(services, spark, "native", {"function": f"{name}:acting"})
    with pytest.raises(PermanentError, match=r"made another frame than when the run was planned; .* as `count` is"):
        acting.run(hour(1))
    failing = archiver_of(services, spark, "native", {"function": f"{name}:asserted"})
    message = rf"\[0\] offset 57: transform\.function: {name}:asserted .* AssertionError: it is 57\. Catch"
    with pytest.raises(PermanentError, match=message):
        failing.run(hour(1))
    assert failing.uploads() == []
    # Its code is part of the plan.
    archiver.produce([Record(0, DAY, value(1), b"k")])
    work = archiver.plan(hour(3))
    (tmp_path / f"{name}.py").write_text((tmp_path / f"{name}.py").read_text() + "# New\n")
    with pytest.raises(
        PermanentError, match=r"transform\.function: the code of .* has changed since the run was planned"
    ):
        archiver.work(work)


def test_the_search_for_a_failing_record_reads_dead_letters_too_and_ends(
    services: Services, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "failed once"
    code = (
        "import os, time\nfrom pyspark.sql import functions as F\n"
        "def checked(frame, hangs):\n    def check(offset):\n"
        f"        if offset == 6:\n            open({str(marker)!r}, 'w').close()\n"
        "            raise ValueError('it is 6')\n"
        f"        while hangs and offset == 1 and os.path.exists({str(marker)!r}):\n            time.sleep(1)\n"
        "    return frame.withColumn('c', F.udf(check, 'string')('_kafka.offset'))\n"
        "def failing(frame):\n    return checked(frame, False)\n"
        "def hanging(frame):\n    return checked(frame, True)\n"
    )
    name = write_module(tmp_path, code)
    archiver = services.archive(
        [Record(0, DAY, b"two\nlines" if n else b"one") for n in range(8)],
        settings={"chunk_records": 4, "format": "text"},
        policies={"bad_record": "dead_letter"},
    )
    archiver.run(hour(1))
    assert archiver.account(hour(1)) == {"archived": 1, "dead_lettered": 7}

    def replayed(function: str) -> None:
        store = archiver.archive.store.model_dump() | {"format": "jsonl"}
        more = {"store": store, "transform": {"function": f"{name}:{function}"}}
        archiver.archive = Archive.model_validate(archiver.archive.model_dump(by_alias=True) | more)
        archiver.context = replace(
            archiver.context, archive=archiver.archive, spark=lambda question: answer(spark, question)
        )
        archiver.work(replay_letters(archiver.context, None))

    with pytest.raises(PermanentError, match=rf"\[0\] offset 6: transform\.function: {name}:failing .*: it is 6"):
        replayed("failing")
    marker.unlink()
    monkeypatch.setattr(failing_records, "SECONDS", 2)
    # On other records than those of the job that failed.
    with pytest.raises(PermanentError, match=rf"^transform\.function: {name}:hanging .* ValueError: it is 6"):
        replayed("hanging")


def test_sql_on_json_without_a_schema_sees_fields_as_text(services: Services, spark: "SparkSession") -> None:
    where = "value is null or value.n > 50 and value.s <> 'x' -- the others are of no use"

    def archived(content: str, transform: Any) -> Archiver:
        archiver = archiver_of(services, spark, "native", transform, value={"decode": "json"})
        store = archiver.archive.store.model_copy(update={"metadata": (), "content": content})
        archiver.archive = archiver.archive.model_copy(update={"store": store})
        archiver.context = replace(archiver.context, archive=archiver.archive)
        archiver.run(hour(1))
        return archiver

    good = [n for n in range(COUNT) if n % 9 == 4 or (n > 50 and n % 11 != 5 and n % 7 != 2)]
    assert sorted(rows(archived("record", {"where": where}))) == good
    # The whole value would have these fields only.
    for select in (["*"], ["CAST(value AS string) AS v"], ["value.*"]):
        with pytest.raises(ConfigError, match="the whole `value` beside fields of a JSON value that has no `schema`"):
            archived("value", {"where": where, "select": select})


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ({"where": "rand() > 0.5"}, "rand depends on chance, so it does not always give the same for the same record"),
        ({"where": "current_timestamp() > timestamp"}, "current_timestamp depends on the time of the query"),
        ({"where": "timestamp < timestamp'now'"}, "timestamp'now' is the time at which Spark reads it"),
        ({"select": ["date /**/ ' today' as d"]}, "is the time at which Spark reads it"),
        ({"select": ["cast('now' as timestamp) as t"]}, "'now' as TIMESTAMP is the time at which Spark reads it"),
        ({"select": ["to_timestamp(concat('no', 'w')) as t"]}, "'now' as TIMESTAMP is the time at which"),
        ({"select": ["to_date('yesterday') as t"]}, "'yesterday' as DATE is the time at which Spark reads it"),
        ({"where": "timestamp > 'today'"}, "'today' as TIMESTAMP is the time at which Spark reads it"),
        ({"where": "_chunk = 0"}, "transform.where: the column _chunk is the archiver's own"),
        ({"select": ["struct(*) as a"]}, "transform.select: the column _chunk is the archiver's own"),
        ({"where": "value.n = (select 1)"}, "depends on other data than the record"),
        ({"where": "row_number() over (order by offset) = 1"}, "Spark plans Window"),
        ({"where": "window(timestamp, '5 minutes').start > timestamp"}, "Spark plans Filter"),
        ({"where": "value.nope = 1"}, "Spark does not take `where`: [FIELD_NOT_FOUND]"),
        ({"where": "value.n"}, "transform.where: expected a condition, true or false; found an expression of type int"),
        ({"select": ["count(*)"]}, "[MISSING_GROUP_BY]"),
        ({"select": ["explode(value.tags)"]}, "UNSUPPORTED_GENERATOR"),
        ({"select": ["value.n as a", "value.s as A"]}, "the columns 'a' and 'A', which Spark and DuckDB do not disti"),
        ({"select": ["* except (n, s, tags)"]}, "the value would have no column left"),
        ({"select": ["*", "value.n"]}, "two columns of the value are named 'n'"),
        ({"select": ["make_interval(1) as i"]}, "i is of Spark's type interval, which objects do not have; cast it"),
    ],
)
def test_sql_that_looks_at_more_than_the_record_is_refused_before_anything_is_planned(
    services: Services, spark: "SparkSession", transform: Any, message: str
) -> None:
    archiver = archiver_of(services, spark, "native", transform)
    with pytest.raises(ConfigError) as caught:
        archiver.plan(hour(1))
    assert message in str(caught.value)
    assert archiver.context.ledger.plan(hour(1).id) is None


@pytest.mark.parametrize("part", ["CAST(value.cents", "value: {decode: json}", "my_spark:items"])
def test_spark_takes_the_examples_of_the_page(
    services: Services, spark: "SparkSession", tmp_path: Path, part: str
) -> None:
    [yaml] = [block for block in EXAMPLES if part in block]
    [code] = [block for language, block in BLOCKS if language == "pyspark"]
    yaml = yaml.replace("my_spark:", f"{write_module(tmp_path, code)}:")
    archive = parse_archive(f"archive: orders\n{yaml}", str(tmp_path / "orders.yaml"))
    archiver = services.archive([Record(0, DAY, b"{}", b"k")])
    document = archiver.archive.model_dump(by_alias=True)
    source = archive.source.model_copy(update={"topics": tuple(archiver.topics)})
    archiver.archive = archive.model_copy(
        update={"archive": document["archive"], "source": source, "store": archive.store}
    )
    archiver.context = replace(
        archiver.context, archive=archiver.archive, spark=lambda question: answer(spark, question)
    )
    archiver.plan(hour(1))
    plan = archiver.context.ledger.plan(hour(1).id)
    assert plan
    transform = plan.settings.transform
    assert transform
    assert transform.sql
    names = [field.name for kind in transform.sql.made.values() for field in field_of(kind).type]
    assert names == {"CAST(value.cents": ["id", "status", "cents", "amount", "partition"],
                     "my_spark:items": ["id", "state", "item"]}.get(part, [])  # fmt: skip


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("spark.sql.jsonGenerator.ignoreNullFields", "false"),
        ("spark.sql.parser.escapedStringLiterals", "true"),
        ("spark.sql.ansi.doubleQuotedIdentifiers", "true"),
        ("spark.sql.legacy.sizeOfNull", "false"),
        ("spark.sql.legacy.negativeIndexInArrayInsert", "true"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
        ("spark.sql.binaryOutputStyle", "BASE64"),
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
    ],
)
def test_what_spark_conf_says_of_values_is_taken_back(spark: "SparkSession", name: str, setting: str) -> None:
    sql = Sql(select=("1 AS x",))
    prepare(spark, sql)
    before = spark.conf.get(name, None)
    spark.conf.set(name, setting)
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    prepare(spark, sql)
    assert spark.conf.get(name, None) == before != setting
    # It decides no value.
    assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
    spark.conf.unset("spark.sql.shuffle.partitions")


def test_planning_asks_a_spark_of_its_own() -> None:
    fields = {"_chunk": "long", "_offset": "long", "value": "binary"}
    question = SqlQuestion(sql=Sql(where="value IS NOT NULL", select=("length(value) AS n",)),
                        topics={"a": fields}, parses_json=False)  # fmt: skip
    reply = ask_spark(question)
    assert (reply.error, reply.spark) == ("", pyspark.__version__)
    assert field_of(reply.made["a"]).type == pa.struct([("n", pa.int32())])


@pytest.mark.parametrize("transform", [{}, {"where": "value.n % 2 = 0"}, {"function": "F:odd"}], ids=str)
def test_the_time_of_a_record_by_sql(
    services: Services, spark: "SparkSession", tmp_path: Path, transform: dict[str, str]
) -> None:
    name = write_module(tmp_path, "def odd(frame): return frame.where('n % 2 = 1')\n")
    with_names = {key: text.replace("F:", f"{name}:") for key, text in transform.items()}
    # Of every seventh the cast fails; every fifth has no time.
    sql = (
        "CASE WHEN value.n % 5 = 0 THEN NULL ELSE timestamp_millis(1795219200000 + 3600000 * CAST(value.s AS int)) END"
    )
    archiver = archiver_of(services, spark, "native", with_names)
    more = archiver.archive.model_dump(by_alias=True) | {
        "timestamp": {"from": "sql", "sql": sql, "missing": "bad_record"}
    }
    archiver.archive = Archive.model_validate(more)
    archiver.context = replace(archiver.context, archive=archiver.archive)
    archiver.run(hour(1))
    filed = {(path, line["n"]) for path, lines in archiver.lines().items() for line in lines if "error" not in line}
    kept = {0: range(COUNT), 1: range(0, COUNT, 2), 2: range(1, COUNT, 2)}[
        0 if not with_names else 1 if "where" in with_names else 2
    ]
    # A function has ANSI off: what fails is null, and then a time is missing, too.
    good = [n for n in kept if n % 9 != 4 and n % 11 != 5 and n % 7 != 2 and n % 5]
    start = 1_795_219_200_000
    assert filed == {(path_of(start + 3_600_000 * n), n) for n in good}
    errors = {line["offset"]: line["error"] for lines in archiver.lines().values() for line in lines if "error" in line}
    bad = {n for n in kept if n % 9 != 4 and n % 11 != 5} - set(good)
    assert bad <= errors.keys()
    for n in bad:
        what = "raised an error" if n % 7 == 2 and n % 5 and "function" not in with_names else "is null or missing"
        assert what in errors[n], n
    assert audit(archiver.archive, archiver.context.store, archiver.now[0], deep=True).findings == ()

"""Libraries that would write other bytes are found out before anything is written, in milliseconds."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pytest
import zstandard

from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.model.plan import PartitionPlan
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats import get_format, known_bytes, names
from kafka_archiver.records.formats.avro import encoder as avro
from kafka_archiver.records.formats.jsonl import JsonLines
from kafka_archiver.records.formats.known_bytes import require_known_bytes
from kafka_archiver.records.formats.shared import compress, deflate
from kafka_archiver.records.writer.result import Limits, WriteJob
from kafka_archiver.spark.native import reader_of, write_in_tasks
from kafka_archiver.spark.sink import Sink, failed, unpacked
from kafka_archiver.values.ranges import Range
from tests.support.extensions import Install
from tests.support.formats import ALL_CASES, CASES, Case, every_case
from tests.support.values import plan

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _new_process() -> None:
    known_bytes._require.cache_clear()


def settings_of(case: Case) -> Settings:
    return case.settings


@every_case
def test_the_libraries_of_requirements_txt_are_right_and_it_takes_milliseconds(case: Case) -> None:
    seconds = []
    for _ in range(4):
        known_bytes._require.cache_clear()
        began = time.process_time()
        require_known_bytes(settings_of(case))
        seconds.append(time.process_time() - began)
    # The first time imports what writing imports.
    assert min(seconds) < 0.1
    require_known_bytes(settings_of(case))
    assert known_bytes._require.cache_info().hits == 1, "once a process"


def test_all_cases_of_this_encoding_are_known() -> None:
    encodings = {name: get_format(name).encoding for name in names()}
    assert encodings == dict.fromkeys(names(), 4), "put the new checksums and number beside the format"
    known = {f"{name}-{which}" for name in names() for which in get_format(name).known}
    plain = {case for case in ALL_CASES if not case.options}
    typed = {case._replace(content="both") for case in plain if get_format(case.format).typed}
    assert known == {case.name for case in plain | typed}
    for case in typed:
        require_known_bytes(Settings(format=case.format, codec=case.codec, content=case.content))


OTHER = dict.fromkeys((1, 2), zstandard.ZstdCompressionParameters.from_level(4, window_log=20, write_checksum=True))
CHANGES: list[tuple[Any, str, Any, str]] = [
    (compress, "ZSTD", OTHER, "zstd"),
    (avro, "ZSTD", OTHER, "zstd"),
    (deflate, "_LEVEL", 1, "gzip"),
]


@pytest.mark.parametrize(("module", "name", "value", "codec"), CHANGES)
def test_what_compresses_otherwise_is_refused_and_named(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, value: Any, codec: str
) -> None:
    """Another version of the library may do it: zstandard 0.23 and 0.24 write different frames."""
    monkeypatch.setattr(module, name, value)
    library, codecs = {"zstd": ("zstandard", ["zstd"]), "gzip": ("isal", ["gzip", "deflate"])}[codec]
    version = __import__(library).__version__
    monkeypatch.setitem(known_bytes._RIGHT, library, ("7.7", "8.8"))
    message = f"found {library} {re.escape(version)}, expected one of 7.7, 8.8. Install .* executors"
    for case in CASES:
        compresses = module is deflate or (case.format == "avro") == (module is avro)
        if case.format != "parquet" and compresses and case.codec in codecs:
            with pytest.raises(PermanentError, match=f"format {case.format}, codec {case.codec}: {message}"):
                require_known_bytes(settings_of(case))
        else:
            require_known_bytes(settings_of(case))


def test_a_build_of_a_right_version_that_is_wrong_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deflate, "_LEVEL", 1)
    with pytest.raises(
        PermanentError, match=r"isal [\d.]+, .* right versions elsewhere: the cause is their build, or this kind"
    ):
        require_known_bytes(Settings())
    # It is not forgotten that they are wrong.
    with pytest.raises(PermanentError, match="does not write the bytes of this release"):
        require_known_bytes(Settings())


def test_dead_letters_have_a_format_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deflate, "_LEVEL", 1)
    settings = Settings(format="parquet", codec="zstd", content="record")
    require_known_bytes(settings)
    with pytest.raises(PermanentError, match="format jsonl, codec gzip"):
        require_known_bytes(settings, dead_letters=True)


class Local:
    """Spark as far as a task goes: it runs here."""

    defaultParallelism = 1  # noqa: N815 - Spark's name

    def parallelize(self, tasks: list[Any], number: int) -> "Local":
        self.tasks = tasks
        return self

    def mapPartitions(self, task: Callable[..., Any]) -> "Local":  # noqa: N802 - Spark's name
        self.told = [item for some in self.tasks for item in task([some])]
        return self

    def collect(self) -> list[bytes]:
        return self.told


@pytest.mark.parametrize("engine", ["native", "spark"])
def test_no_task_reads_before_its_libraries_were_looked_at(monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    monkeypatch.setattr(deflate, "_LEVEL", 1)
    partition = PartitionPlan(
        topic="t",
        topic_id="id",
        partition=0,
        start=0,
        end=9,
        log_start=0,
        log_end=9,
        ranges=(Range(0, 9),),
    )
    of = plan(partition)
    sink: Any = Sink(of, "memory://x", {}, Limits(), WriteJob.of(of, "fail", {}), SimpleNamespace(add=list), 1)  # type: ignore[arg-type]
    nowhere, context = {"bootstrap.servers": "127.0.0.1:1"}, Local()

    def records() -> Iterator[pa.RecordBatch]:
        raise AssertionError("something was read")
        yield

    chunks = list(of.chunks())

    def natively() -> None:
        written = write_in_tasks(context, [chunks], reader_of(sink, nowhere), sink)  # type: ignore[arg-type]
        raise failed(unpacked(written)) or AssertionError

    write: dict[str, Callable[[], object]] = {"native": natively, "spark": lambda: sink._write_some(records())}
    with pytest.raises(PermanentError, match="does not write the bytes of this release"):
        write[engine]()


class Theirs(JsonLines):
    """A format of another distribution."""

    name = "theirs"
    known: ClassVar[Mapping[str, str]] = {}


THEIRS = Theirs()


def test_a_format_of_another_distribution_answers_for_itself(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("formats", theirs=f"{__name__}:THEIRS")
    monkeypatch.setattr(deflate, "_LEVEL", 1)
    require_known_bytes(Settings(format="theirs"))


def test_a_format_that_is_not_installed_where_objects_are_written_is_named() -> None:
    with pytest.raises(ConfigError, match=r"store.format: expected avro \| .*, found 'theirs'"):
        require_known_bytes(Settings(format="theirs"))

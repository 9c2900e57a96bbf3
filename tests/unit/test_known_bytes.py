"""Libraries that would write other bytes are found out before anything is written, in milliseconds."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from kafka_archiver.errors import PermanentError
from kafka_archiver.formats import avro, compress, known_bytes
from kafka_archiver.formats.known_bytes import require_known_bytes
from kafka_archiver.plan import ENCODING, PartitionPlan, Settings
from kafka_archiver.ranges import Range
from kafka_archiver.spark.native import write_natively
from kafka_archiver.spark.sink import Sink
from kafka_archiver.writer.result import Limits
from tests.support.formats import CASES, Case, every_case
from tests.support.values import plan

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _new_process() -> None:
    known_bytes._require.cache_clear()


def settings_of(case: Case) -> Settings:
    return Settings.model_validate(case._asdict())


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
    assert ENCODING == 3, "put the new checksums into formats/known_bytes.py, and the new number here"
    assert set(known_bytes._KNOWN) == {"-".join(case) for case in CASES}


OTHER = zstandard.ZstdCompressionParameters.from_level(4, window_log=20, write_checksum=True)
CHANGES: list[tuple[Any, str, Any, str]] = [
    (compress, "ZSTD", OTHER, "zstd"),
    (avro, "ZSTD", OTHER, "zstd"),
    (compress, "GZIP_LEVEL", 1, "gzip"),
    (avro, "GZIP_LEVEL", 1, "gzip"),
]


@pytest.mark.parametrize(("module", "name", "value", "codec"), CHANGES)
def test_what_compresses_otherwise_is_refused_and_named(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, value: Any, codec: str
) -> None:
    """As another version of the library does: zstandard 0.23 and 0.24 write different frames."""
    monkeypatch.setattr(module, name, value)
    library = {"zstd": "zstandard", "gzip": "isal"}[codec]
    version = __import__(library).__version__
    monkeypatch.setitem(known_bytes._RIGHT, library, ("7.7", "8.8"))
    formats = "avro" if module is avro else "jsonl"
    message = f"{library} is {re.escape(version)}, and right are 7.7, 8.8. Install .* executors"
    for case in CASES:
        if (case.format, case.codec) == (formats, codec):
            with pytest.raises(PermanentError, match=f"format {formats}, codec {codec}: {message}"):
                require_known_bytes(settings_of(case))
        else:
            require_known_bytes(settings_of(case))


def test_a_build_of_a_right_version_that_is_wrong_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compress, "GZIP_LEVEL", 1)
    with pytest.raises(
        PermanentError, match=r"isal [\d.]+, .* are right elsewhere, so it is their build, or this kind"
    ):
        require_known_bytes(Settings())
    # It is not forgotten that they are wrong.
    with pytest.raises(PermanentError, match="does not write the bytes of this release"):
        require_known_bytes(Settings())


def test_dead_letters_have_a_format_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compress, "GZIP_LEVEL", 1)
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
        for some in self.tasks:
            task([some])
        return self


@pytest.mark.parametrize("engine", ["native", "spark"])
def test_no_task_reads_before_its_libraries_were_looked_at(monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    monkeypatch.setattr(compress, "GZIP_LEVEL", 1)
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
    sink: Any = Sink(of, "memory://x", {}, Limits(), "fail", None)  # type: ignore[arg-type]
    nowhere, context = {"bootstrap.servers": "127.0.0.1:1"}, Local()

    def records() -> Iterator[pa.RecordBatch]:
        raise AssertionError("something was read")
        yield

    chunks = list(of.chunks())
    write: dict[str, Callable[[], object]] = {
        "native": lambda: write_natively(context, chunks, nowhere, sink),  # type: ignore[arg-type]
        "spark": lambda: next(sink.write_frame(records())),
    }
    with pytest.raises(PermanentError, match="does not write the bytes of this release"):
        write[engine]()


def test_a_format_of_another_distribution_answers_for_itself() -> None:
    require_known_bytes(Settings(format="theirs", codec="theirs"))

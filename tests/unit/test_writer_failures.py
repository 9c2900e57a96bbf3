"""Whatever fails: the error as it was, every upload aborted, nothing visible, nothing left on disk."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_archiver.messages.errors import BadRecordError, IntegrityError, PermanentError, TransientError
from kafka_archiver.records.writer.chunk_objects import ChunkObjects
from kafka_archiver.records.writer.finish_uploads import abort, complete
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.store.base import Body, PendingUpload, UploadedPart
from kafka_archiver.store.memory import MemoryStore
from scripts.stack.paths import ROOT
from tests.support.chunks import HOUR, Row, chunk_of, cut, new_store, write

pytestmark = pytest.mark.unit

PARTS = 1000
# Nothing is gathered before it is written.
PROMPT = Limits(memory_bytes=PARTS, upload_threads=1)
ROWS = [Row(i, i % 5 * HOUR, value=b"1%d" % i * 40) for i in range(400)]


class Faulty(MemoryStore):
    """Fails at the n-th call of one method; knows how many parts were on their way at the same time."""

    def __init__(self, method: str = "", at: int = 0, error: BaseException | None = None) -> None:
        super().__init__(new_store().url.removeprefix("memory://"))
        self.began: list[str] = []
        self.aborted: list[str] = []
        self.sending = self.most = self.sent = 0
        self._fault = (method, at)
        self._error = error
        self._calls: dict[str, int] = {}
        self._lock = threading.Lock()

    def _count(self, method: str) -> None:
        with self._lock:
            self._calls[method] = self._calls.get(method, 0) + 1
            if self._error and self._fault == (method, self._calls[method]):
                raise self._error

    def start_upload(self, key: str) -> PendingUpload:
        self._count("start_upload")
        upload = super().start_upload(key)
        self.began.append(upload.upload_id)
        return upload

    def upload_part(self, upload: PendingUpload, number: int, data: Body, crc32: int) -> UploadedPart:
        with self._lock:
            self.sending += 1
            self.most = max(self.most, self.sending)
        try:
            self._count("upload_part")
            return super().upload_part(upload, number, data, crc32)
        finally:
            with self._lock:
                self.sending -= 1
                self.sent += 1

    def complete_upload(self, upload: PendingUpload) -> str:
        self._count("complete_upload")
        return super().complete_upload(upload)

    def abort_upload(self, key: str, upload_id: str) -> None:
        self.aborted.append(upload_id)
        self._count("abort_upload")
        super().abort_upload(key, upload_id)


def open_files() -> set[str]:
    return {str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}


@pytest.fixture(params=[1, 3], ids=["1 thread", "3 threads"])
def limits(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Limits]:
    """So tight that everything goes to disk; checks that nothing stays there."""
    yield Limits(memory_bytes=2000, open_objects=3, upload_threads=request.param, spill_directory=tmp_path)
    assert not list(tmp_path.iterdir())
    assert not [name for name in open_files() if name.startswith(str(tmp_path))]


@pytest.mark.parametrize("error", [TransientError("throttled"), PermanentError("no bucket"), KeyboardInterrupt()])
@pytest.mark.parametrize(
    ("method", "at"), [("start_upload", 1), ("start_upload", 5), ("upload_part", 1), ("upload_part", 7)]
)
def test_an_upload_fails(limits: Limits, method: str, at: int, error: BaseException) -> None:
    store = Faulty(method, at, error)
    with pytest.raises(type(error)) as caught:
        write(chunk_of(0, 400), cut(ROWS, 50), store, limits, codec="none", part_bytes=PARTS)
    assert caught.value is error
    assert sorted(store.aborted) == sorted(store.began)
    assert not list(store.list_uploads(""))
    assert not list(store.list(""))


@pytest.mark.parametrize("hours", [1, 2])
@pytest.mark.parametrize(
    ("method", "error"), [("start_upload", OSError("gone")), ("upload_part", OSError("gone")), ("", None)]
)
def test_a_thread_is_started_only_if_there_is_other_work_meanwhile(
    hours: int, method: str, error: BaseException | None
) -> None:
    threads = []

    class Noting(Faulty):
        def start_upload(self, key: str) -> PendingUpload:
            threads.append(threading.current_thread())
            return super().start_upload(key)

    store = Noting(method, 1, error)
    with pytest.raises(OSError, match="gone") if error else nullcontext():
        write(chunk_of(0, 9), cut([Row(i, i % hours * HOUR) for i in range(9)], 9), store)
    assert (threading.main_thread() in threads) == (hours == 1)
    assert sorted(store.aborted) == sorted(store.began if error else [])


def test_parts_are_sent_by_so_many_threads_and_no_more(limits: Limits) -> None:
    store = Faulty()
    result = write(chunk_of(0, 400), cut(ROWS, 50), store, limits, codec="none", part_bytes=PARTS)
    assert store.most <= limits.upload_threads
    assert len(list(store.list_uploads(""))) == len(result.objects) == 5


def test_parts_do_not_pile_up_when_the_store_is_slow() -> None:
    ahead = threading.Event()

    class Slow(Faulty):
        def upload_part(self, upload: PendingUpload, number: int, data: Body, crc32: int) -> UploadedPart:
            # Only as long as it takes to see that nobody gets ahead.
            ahead.wait(0.3 if number == 1 else 0)
            return super().upload_part(upload, number, data, crc32)

    def batches() -> Iterator[pa.RecordBatch]:
        # Each batch is a part: the first is on its way and the second waits when the third is read.
        for start in range(0, 100, 10):
            if start >= 30 and not store.sent:
                ahead.set()
            yield from cut([Row(i, 5, value=b"x" * 99) for i in range(start, start + 10)], 10)

    store = Slow()
    write(chunk_of(0, 100), batches(), store, PROMPT, codec="none", part_bytes=PARTS)
    assert not ahead.is_set()


def test_a_failure_stops_the_reading_soon() -> None:
    read = 0

    def endless() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for start in range(0, 10**6, 10):
            read += 1
            yield from cut([Row(i, 5, value=b"x" * 99) for i in range(start, start + 10)], 10)

    store = Faulty("upload_part", 2, TransientError("reset"))
    with pytest.raises(TransientError, match="reset"):
        write(chunk_of(0, 10**6), endless(), store, PROMPT, codec="none", part_bytes=PARTS)
    # A batch is a part: while the second fails, the third may be made and wait for the only thread.
    assert read <= 4


@pytest.mark.parametrize("error", [OSError("broker gone"), KeyboardInterrupt(), GeneratorExit()])
def test_the_reader_fails(limits: Limits, error: BaseException) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from cut(ROWS[:300], 50)
        raise error

    store = Faulty()
    with pytest.raises(type(error)) as caught:
        write(chunk_of(0, 400), failing(), store, limits, codec="none", part_bytes=PARTS)
    assert caught.value is error
    assert store.began
    assert not list(store.list_uploads(""))


def test_the_offsets_are_wrong_at_the_end(limits: Limits) -> None:
    store = Faulty()
    with pytest.raises(IntegrityError):
        write(chunk_of(0, 399), cut(ROWS, 50), store, limits, codec="none", part_bytes=PARTS)
    assert store.began
    assert not list(store.list_uploads(""))


def test_the_encoder_fails(limits: Limits) -> None:
    store = Faulty()
    rows = [*ROWS[:399], Row(399, 7, value=b"not json")]
    with pytest.raises(BadRecordError, match="offset 399"):
        write(chunk_of(0, 400), cut(rows, 50), store, limits, codec="none", part_bytes=PARTS, value_decode="json")
    assert store.began
    assert not list(store.list_uploads(""))


def test_a_part_on_its_way_arrives_before_the_abort() -> None:
    """One that arrived later would stay in the store for ever."""
    began, aborting = threading.Event(), threading.Event()

    class Slow(Faulty):
        def upload_part(self, upload: PendingUpload, number: int, data: Body, crc32: int) -> UploadedPart:
            began.set()
            assert not aborting.wait(0.3)
            return super().upload_part(upload, number, data, crc32)

        def abort_upload(self, key: str, upload_id: str) -> None:
            aborting.set()
            assert self.sent
            super().abort_upload(key, upload_id)

    def failing() -> Iterator[pa.RecordBatch]:
        yield from cut([Row(0, 5, value=b"x" * PARTS)], 1)
        began.wait(10)
        raise OSError("broker gone")

    store = Slow()
    with pytest.raises(OSError, match="broker gone"):
        write(chunk_of(0, 10), failing(), store, PROMPT, codec="none", part_bytes=PARTS)
    assert store.sent
    assert not list(store.list_uploads(""))


def test_records_that_the_writer_loses_are_no_filtered_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = ChunkObjects._encode
    monkeypatch.setattr(
        ChunkObjects, "_encode", lambda self, *slot_batch: encode(self, *slot_batch[:2], slot_batch[2].slice(1))
    )
    store = Faulty()
    with pytest.raises(IntegrityError, match="expected 400 archived rows, found 395 in its objects"):
        write(chunk_of(0, 400), cut(ROWS, 100), store)
    assert not list(store.list_uploads(""))


def test_an_abort_that_fails_hides_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Both(Faulty):
        def abort_upload(self, key: str, upload_id: str) -> None:
            super().abort_upload(key, upload_id)
            raise TransientError("also gone")

    store = Both("upload_part", 7, TransientError("gone"))
    with pytest.raises(TransientError, match=r"^gone"):
        write(chunk_of(0, 400), cut(ROWS, 50), store, codec="none", part_bytes=PARTS)
    assert sorted(store.aborted) == sorted(store.began)
    assert "also gone" in caplog.text


def test_there_is_no_room_on_disk(tmp_path: Path) -> None:
    with pytest.raises(TransientError, match="set another spill directory"):
        write(chunk_of(0, 400), cut(ROWS, 50), limits=Limits(memory_bytes=2000, spill_directory=tmp_path / "missing"))


FULL = """
import resource, sys
from pathlib import Path
from tests.unit.test_writer_failures import ROWS, write_small_parts
# What a disk says that has room for so many bytes of a file, and for no more.
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    write_small_parts(Path(sys.argv[1]), int(sys.argv[3]))
except BaseException as error:
    print(f"{type(error).__name__}: {error}")
"""


def write_small_parts(directory: Path, open_objects: int) -> None:
    """In pieces so small that they wait in a file's buffer, too."""
    limits = Limits(memory_bytes=20_000, open_objects=open_objects, spill_directory=directory)
    write(chunk_of(0, 400), cut(ROWS, 50), Faulty(), limits, codec="none", part_bytes=100_000)


@pytest.mark.parametrize("room", [0, 1, 4096, 9_000])
@pytest.mark.parametrize("open_objects", [2, 9], ids=["records wait", "parts spill"])
def test_a_full_disk_is_what_the_person_reads_whatever_fails_behind_it(
    tmp_path: Path, open_objects: int, room: int
) -> None:
    """A file that could not write something tries it again when it is closed."""
    command = [sys.executable, "-c", FULL, str(tmp_path), str(room), str(open_objects)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'include'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.startswith("TransientError: Temporary files in ")
    assert "File too large. Free space there, or set another spill directory." in run.stdout
    assert run.stderr == ""
    assert not list(tmp_path.iterdir())


def _results(store: MemoryStore) -> list:
    chunks = [chunk_of(0, 400), chunk_of(0, 400, "other")]
    return [write(chunk, cut(ROWS, 50), store, codec="none", part_bytes=6 << 20) for chunk in chunks]


@pytest.mark.parametrize("threads", [1, 4])
def test_the_driver_makes_all_visible(threads: int) -> None:
    store = Faulty()
    results = _results(store)
    entries = complete(results, store, threads)
    assert [e.key for e in entries] == [o.upload.key for result in results for o in result.objects]
    assert {s.key: (s.size, s.etag) for s in store.list("")} == {e.key: (e.bytes, e.etag) for e in entries}
    assert complete(results, store, threads) == entries


def test_the_driver_throws_all_away() -> None:
    store = Faulty()
    abort(_results(store), store)
    assert not list(store.list_uploads(""))
    assert not list(store.list(""))


@pytest.mark.parametrize("threads", [1, 4])
def test_one_of_several_cannot_be_completed(threads: int) -> None:
    store = Faulty("complete_upload", 3, PermanentError("denied"))
    results = _results(store)
    with pytest.raises(PermanentError, match="denied"):
        complete(results, store, threads)
    # The others in work end, none is begun.
    assert len(list(store.list(""))) <= 2 + threads
    abort(results, store, threads)
    assert not list(store.list_uploads(""))

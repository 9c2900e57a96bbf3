"""What a sampling profiler has seen: stacks of functions, and which part of the work each belongs to. Pure."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from bench.usage import Kind

_PROCESS = re.compile(r'^process \d+:"(?P<command>.*?)"?$')
# A function without a name: 0x7fae6304524a (/usr/lib/x86_64-linux-gnu/libc.so.6)
_NAMELESS = re.compile(r"^0x[0-9a-f]+ \((?:.*/)?(?P<library>[^/]*)\)$")
_FOLDERS = re.compile(r"\((?:\S*/(?:site-packages|lib/python3\.\d+|include)/)(?=\S+\))")

# The first that fits a stack names its part, whichever of its functions it fits.
PARTS: dict[str, re.Pattern[str]] = {
    "garbage collection": re.compile(r"gc_collect"),
    "import": re.compile(r"_find_and_load|importlib"),
    "checksum": re.compile(r"kafka_archiver/checksum\.py|store/s3_sums\.py|store/.*(hashlib|libcrypto|[Mm][Dd]5)"),
    "upload": re.compile(r"writer/upload\.py|kafka_archiver/store/|botocore/|writer/(disk|part|waiting)\.py"),
    "compress": re.compile(r"isal|libz\.|zstd|ZSTD|igzip|[Ss]nappy|cramjam|formats/shared/compress\.py"),
    "build batches": re.compile(r"_batch \(kafka_archiver/kafka/|formats/vectors\.py"),
    "consume": re.compile(r"kafka_archiver/kafka/|confluent_kafka|librdkafka"),
    "encode": re.compile(r"kafka_archiver/formats/"),
    "part by hour": re.compile(r"writer/(split|outputs?|offsets|chunk)\.py"),
    "plan, manifest": re.compile(r"kafka_archiver/"),
    "Spark": re.compile(r"pyspark|py4j"),
}
OTHER = "other"
# A thread that waits here was only woken by the profiler.
_WAITS = re.compile(
    r"^(poll|ppoll|epoll_\w*wait\w*|p?select(64)?|recv|accept4?|clock_nanosleep|wait(4|pid)|sem_\w*wait|"
    r"pthread_cond_\w*wait|PyThread_acquire_lock\w*|do_futex_wait\S*) \("
)


class Stack(NamedTuple):
    """One sample or several of the same: functions from the outermost to the one that ran."""

    kind: Kind
    frames: tuple[str, ...]
    samples: int

    @property
    def part(self) -> str:
        """Which part of the work it is: a key of PARTS, or OTHER."""
        whole = ";".join(self.frames)
        return next((part for part, pattern in PARTS.items() if pattern.search(whole)), OTHER)


def parse(lines: Iterable[str]) -> list[Stack]:
    """Stacks of the job's driver and workers in the profiler's raw output, those that wait left out.

    :param lines: `function;function;… samples`.
    """
    found: Counter[tuple[Kind, tuple[str, ...]]] = Counter()
    for line in lines:
        whole, _, samples = line.rstrip().rpartition(" ")
        commands: list[str] = []
        frames: list[str] = []
        for frame in whole.split(";"):
            process = _PROCESS.match(frame)
            (commands if process else frames).append(process["command"] if process else frame)
        kind = _kind(commands[-1] if commands else "")
        readable = _readable(frames)
        named = [frame for frame in readable if not frame.startswith("[")]
        if kind and readable and not (named and _WAITS.match(named[-1])):
            found[kind, readable] += int(samples)
    return [Stack(kind, frames, samples) for (kind, frames), samples in found.items()]


def by_part(stacks: Iterable[Stack]) -> Counter[str]:
    """Samples by part."""
    found: Counter[str] = Counter()
    for stack in stacks:
        found[stack.part] += stack.samples
    return found


def by_function(stacks: Iterable[Stack]) -> Counter[str]:
    """Samples by the function that ran; one that has no name, with the one that called it."""
    found: Counter[str] = Counter()
    for stack in stacks:
        named = [frame for frame in stack.frames if not frame.startswith("[")]
        last = stack.frames[-1]
        found[last if last in named or not named else f"{named[-1]} → {last}"] += stack.samples
    return found


def _kind(command: str) -> Kind | None:
    if "pyspark.daemon" in command:
        return "worker"
    return "driver" if "archive.py" in command and "bench.measure" not in command else None


def _readable(frames: list[str]) -> tuple[str, ...]:
    """Without folders that say nothing; functions without a name as [library], once for several in a row."""
    readable: list[str] = []
    for frame in frames:
        nameless = _NAMELESS.match(frame)
        name = f"[{nameless['library']}]" if nameless else _FOLDERS.sub("(", frame)
        if not (nameless and readable and readable[-1] == name):
            readable.append(name)
    return tuple(readable)

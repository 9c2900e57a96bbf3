"""The floors: what reading the records, and what compressing and sending them, costs when nothing else is done."""

import re
import time
import uuid
from typing import Any

import boto3
from botocore.config import Config
from isal import isal_zlib

from bench.commands import measured
from bench.services import Services
from bench.topics import read
from scripts.stack.java import find_java
from scripts.stack.paths import BROKER_JARS

_CLASS = "org.apache.kafka.tools.ConsumerPerformance"
_GZIP = 31
_LEVEL = 2
_PART = 8 << 20
# start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, …
_RESULT = re.compile(r"^\d{4}-[^,]+, \d{4}-[^,]+, [\d.]+, [\d.]+, (?P<records>\d+), ", re.MULTILINE)


def consumed(output: str) -> int:
    """How many records ConsumerPerformance says it has read.

    :raises ValueError: its output has no line with figures.
    """
    found = _RESULT.search(output)
    if found is None:
        raise ValueError(f"not the output of {_CLASS}: {output[-500:]!r}")
    return int(found["records"])


def java_consumer(services: Services, topic: str, records: int) -> float:
    """CPU seconds of a JVM that reads `records` records with Kafka's own consumer and does nothing with them."""
    properties = services.directory / "consumer.properties"
    # As the job reads: with checksums, which are on by default, and whole fetches.
    properties.write_text("auto.offset.reset=earliest\nmax.partition.fetch.bytes=2097152\n")
    command = [str(find_java().executable), "-XX:-UsePerfData", "-XX:+UseSerialGC"]
    command += ["-cp", f"{BROKER_JARS}/*", _CLASS]
    command += ["--bootstrap-server", services.kafka.bootstrap_servers, "--topic", topic, "--messages", str(records)]
    command += ["--consumer.config", str(properties), "--group", f"floor-{uuid.uuid4().hex[:8]}"]
    log = services.directory / "consumer.log"
    usage = measured(command, log)
    if (found := consumed(log.read_text(errors="replace"))) < records:
        raise RuntimeError(f"the Java consumer read {found} of {records} records")
    return usage.total


def compress_and_put(services: Services, topic: str, partitions: int) -> tuple[float, int]:
    """CPU seconds, and bytes sent, of gzip (isal's level 2) and PUT alone: one object a partition, in parts.

    Only this thread's CPU between having the lines and having sent them counts, not how they were read.
    """
    client = _client(services)
    seconds, sent = 0.0, 0
    compressor = isal_zlib.compressobj(_LEVEL, 8, _GZIP)
    held, number, last = bytearray(), 0, -1

    def put() -> None:
        nonlocal held, number, sent
        client.put_object(Bucket=services.s3.bucket, Key=f"floor/{topic}/{number}", Body=bytes(held))
        number, sent, held = number + 1, sent + len(held), bytearray()

    for partition, values in read(services.kafka.bootstrap_servers, topic, partitions):
        lines = b"\n".join(values) + b"\n"
        started = time.thread_time()
        if partition != last and last >= 0:
            held += compressor.flush()
            put()
            compressor = isal_zlib.compressobj(_LEVEL, 8, _GZIP)
        last = partition
        held += compressor.compress(lines)
        if len(held) >= _PART:
            put()
        seconds += time.thread_time() - started
    started = time.thread_time()
    held += compressor.flush()
    put()
    return seconds + time.thread_time() - started, sent


def _client(services: Services) -> Any:
    owner = services.s3.owner
    return boto3.client(
        "s3",
        endpoint_url=services.s3.endpoint_url,
        region_name=services.s3.region,
        aws_access_key_id=owner.access_key,
        aws_secret_access_key=owner.secret_key,
        # The cheapest that there is: nothing is checked.
        config=Config(request_checksum_calculation="when_required", s3={"payload_signing_enabled": False}),
    )

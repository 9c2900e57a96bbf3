"""A topic as Java's `kafka-console-consumer` prints it: a client that shares no code with librdkafka."""

import re
import subprocess
import uuid

from scripts.stack.java import find_java
from scripts.stack.paths import BROKER_JARS
from tests.support import quick
from tests.support.odd_records import Consumed, Content

_TOOL = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def java_consumed(brokers: str, topic: str, partition: int, count: int) -> list[Consumed]:
    """Return the first committed records of a partition, byte for byte."""
    field, line, header, null = (f"<{name}-{uuid.uuid4().hex}>" for name in ("field", "line", "header", "null"))
    printed = {
        "print.timestamp": "true",
        "print.offset": "true",
        "print.headers": "true",
        "print.key": "true",
        "key.separator": field,
        "line.separator": line,
        "headers.separator": header,
        "null.literal": null,
    }
    command = [
        str(find_java().executable), *quick.JAVA, "-cp", f"{BROKER_JARS}/*", _TOOL,
        "--bootstrap-server", brokers, "--topic", topic, "--partition", str(partition), "--offset", "earliest",
        "--isolation-level", "read_committed", "--max-messages", str(count), "--timeout-ms", "60000",
        *(part for name, value in printed.items() for part in ("--formatter-property", f"{name}={value}")),
    ]  # fmt: skip
    output = subprocess.run(command, capture_output=True, check=True, timeout=120).stdout
    *lines, end = output.split(line.encode())
    assert end == b"", end[:200]
    marks = field.encode(), header.encode(), null.encode()
    return [_parsed(text, *marks) for text in lines]


def _parsed(text: bytes, field: bytes, header: bytes, null: bytes) -> Consumed:
    def bytes_or_none(part: bytes) -> bytes | None:
        return None if part == null else part

    time, offset, headers, key, value = text.split(field)
    pairs: list[tuple[str, bytes | None]] = []
    # Java prints NO_HEADERS for none, and a name, a colon and the value for each.
    for pair in () if headers == b"NO_HEADERS" else headers.split(header):
        name, _, content = pair.partition(b":")
        pairs.append((name.decode(), bytes_or_none(content)))
    stamp = re.fullmatch(rb"(?:CreateTime|NoTimestampType):(-?\d+)", time)
    assert stamp, time
    place = re.fullmatch(rb"Offset:(\d+)", offset)
    assert place, offset
    return Consumed(int(place[1]), Content(bytes_or_none(key), bytes_or_none(value), tuple(pairs), int(stamp[1])))

"""Topics as Java's `kafka-console-consumer` prints them: a client that shares no code with librdkafka."""

import re
import subprocess
import uuid
from collections.abc import Sequence

from scripts.stack.java import find_java
from scripts.stack.paths import BROKER_JARS
from tests.support import quick
from tests.support.odd_records import Consumed, Content

_TOOL = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def java_consumed(brokers: str, topics: Sequence[str], count: int) -> dict[int, list[Consumed]]:
    """Return the first committed records of topics, byte for byte, by partition.

    :param topics: whose records are in different partitions, because the tool does not print topics.
    :param count: of the records of all partitions.
    """
    field, line, header, null = (f"<{name}-{uuid.uuid4().hex}>" for name in ("field", "line", "header", "null"))
    printed = {
        "print.timestamp": "true",
        "print.partition": "true",
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
        "--bootstrap-server", brokers, "--include", "|".join(map(re.escape, topics)), "--from-beginning",
        "--isolation-level", "read_committed", "--max-messages", str(count), "--timeout-ms", "60000",
        *(part for name, value in printed.items() for part in ("--property", f"{name}={value}")),
    ]  # fmt: skip
    output = subprocess.run(command, capture_output=True, check=True, timeout=120).stdout
    *lines, end = output.split(line.encode())
    assert end == b"", end[:200]
    marks = field.encode(), header.encode(), null.encode()
    records: dict[int, list[Consumed]] = {}
    for text in lines:
        partition, record = _parsed(text, *marks)
        records.setdefault(partition, []).append(record)
    return records


def _parsed(text: bytes, field: bytes, header: bytes, null: bytes) -> tuple[int, Consumed]:
    def bytes_or_none(part: bytes) -> bytes | None:
        return None if part == null else part

    *places, headers, key, value = text.split(field)
    numbers = {name: int(number) for name, _, number in (place.partition(b":") for place in places)}
    pairs: list[tuple[str, bytes | None]] = []
    # Java prints NO_HEADERS for none, and a name, a colon and the value for each.
    for pair in () if headers == b"NO_HEADERS" else headers.split(header):
        name, _, inner = pair.partition(b":")
        pairs.append((name.decode(), bytes_or_none(inner)))
    content = Content(bytes_or_none(key), bytes_or_none(value), tuple(pairs), numbers[b"CreateTime"])
    return numbers[b"Partition"], Consumed(numbers[b"Offset"], content)

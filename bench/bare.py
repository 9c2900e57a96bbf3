"""The bare program for comparison: a script without any guarantee.

python -m bench.bare TOPIC PARTITIONS BUCKET: two processes read half of the partitions each through librdkafka (key,
value, headers, offset and timestamp of every record), split the values by hour, compress them as lines with isal's gzip
and PUT one object per partition and hour. No plan, no account, no retry, no check, no memory limit. It reads
KAFKA_BOOTSTRAP_SERVERS, S3_ENDPOINT_URL and boto3's own variables.
"""

import os
import sys
from collections import defaultdict
from multiprocessing import Process
from typing import Any

PROCESSES = 2
_BATCH = 2000
_MS_PER_HOUR = 3_600_000
_CONSUMER: dict[str, Any] = {
    "group.id": "bare",
    "enable.auto.commit": False,
    "check.crcs": True,
    "fetch.message.max.bytes": 4 << 20,
    "fetch.max.bytes": 64 << 20,
    "fetch.wait.max.ms": 50,
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 65_536,
}


def copy(topic: str, partitions: list[int], bucket: str) -> None:
    """Copy some partitions, one after the other."""
    import boto3
    from botocore.config import Config
    from confluent_kafka import Consumer, TopicPartition
    from isal import isal_zlib

    cheap = Config(request_checksum_calculation="when_required", s3={"payload_signing_enabled": False})
    store = boto3.client("s3", endpoint_url=os.environ["S3_ENDPOINT_URL"], config=cheap)
    consumer = Consumer({"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], **_CONSUMER})
    for partition in partitions:
        position, end = consumer.get_watermark_offsets(TopicPartition(topic, partition))
        consumer.assign([TopicPartition(topic, partition, position)])
        files: dict[int, tuple[Any, list[bytes]]] = {}
        while position < end:
            # At most the remaining offsets, or `consume` would wait a second at each partition's end.
            messages = consumer.consume(min(_BATCH, end - position), timeout=1)
            if not messages:
                continue
            position = (messages[-1].offset() or 0) + 1
            hours = [m.timestamp()[1] // _MS_PER_HOUR for m in messages]
            values = [m.value() or b"" for m in messages]
            for m in messages:
                m.key(), m.headers(), m.offset()
            by_hour: dict[int, list[bytes]] = defaultdict(list)
            if min(hours) == max(hours):
                by_hour[hours[0]] = values
            else:
                for hour, value in zip(hours, values, strict=True):
                    by_hour[hour].append(value)
            for hour, some in by_hour.items():
                if hour not in files:
                    files[hour] = (isal_zlib.compressobj(2, 8, 31), [])
                compressor, done = files[hour]
                done.append(compressor.compress(b"\n".join(some) + b"\n"))
        for hour, (compressor, done) in files.items():
            body = b"".join([*done, compressor.flush()])
            store.put_object(Bucket=bucket, Key=f"bare/{topic}/{hour}/{partition}", Body=body)
    consumer.close()


def main(topic: str, partitions: str, bucket: str) -> None:
    """Copy a topic."""
    share = [list(range(int(partitions))[i::PROCESSES]) for i in range(PROCESSES)]
    processes = [Process(target=copy, args=(topic, some, bucket)) for some in share]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(any(process.exitcode for process in processes))


if __name__ == "__main__":
    main(*sys.argv[1:])

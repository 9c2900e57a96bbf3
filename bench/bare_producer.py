"""The bare producer to compare a restore with: a loop around confluent-kafka's `produce()`, without any guarantee.

python -m bench.bare_producer BROKERS TOPIC RECORDS SIZE MODE: keys, values and timestamps are in memory before it
begins. MODE: `plain`, or `transactions` of 16 MiB. It prints its own CPU seconds as JSON, of all its threads, without
start-up.
"""

import json
import sys
import time
import uuid
from itertools import islice
from typing import Any

from confluent_kafka import Producer

from bench.records import START, values

# Those of a restore's writer; in transactions, no more in the queue than may be in flight: see `kafka.transactional`.
_CONFIG: dict[str, Any] = {"linger.ms": 200, "compression.type": "lz4", "batch.size": 1_000_000}
_QUEUES: dict[str, dict[str, Any]] = {
    "plain": {"queue.buffering.max.messages": 200_000, "queue.buffering.max.kbytes": 64 << 10},
    "transactions": {"queue.buffering.max.messages": 30_000, "queue.buffering.max.kbytes": 4000},
}
_TRANSACTION = 16 << 20


def main(brokers: str, topic: str, number: str, size: str, mode: str) -> None:
    """Produce the records to partition 0."""
    config = {"bootstrap.servers": brokers, **_CONFIG, **_QUEUES[mode]}
    producer = Producer(config | ({"transactional.id": uuid.uuid4().hex} if mode == "transactions" else {}))
    records = [
        (b"customer-%d" % n, value, START + n // 1000) for n, value in enumerate(islice(values(int(size)), int(number)))
    ]
    if mode == "transactions":
        producer.init_transactions()
        producer.begin_transaction()
    began, wall, sent = time.process_time(), time.monotonic(), 0
    for n, (key, value, timestamp) in enumerate(records):
        while True:
            try:
                producer.produce(topic, value, key, 0, timestamp=timestamp)
                break
            except BufferError:
                producer.poll(0.05)
        if n % 1000 == 0:
            producer.poll(0)
        if mode == "transactions":
            sent += len(key) + len(value)
            if sent >= _TRANSACTION:
                producer.commit_transaction()
                producer.begin_transaction()
                sent = 0
    if left := producer.flush(120):
        raise RuntimeError(f"the broker did not confirm {left} records")
    if mode == "transactions":
        producer.commit_transaction()
    print(json.dumps({"cpu": time.process_time() - began, "wall": time.monotonic() - wall}))


if __name__ == "__main__":
    main(*sys.argv[1:])

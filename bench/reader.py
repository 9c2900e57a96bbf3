"""python -m bench.reader [--records N]: CPU seconds per million records of reading alone, in C and in Python.

Each figure is that of a process of its own, which reads a whole topic as batches and drops them.
"""

import argparse
import os
import subprocess
import sys
import time

from confluent_kafka import Consumer, TopicPartition

from bench.records import records
from bench.scenarios import Scenario
from bench.services import services
from bench.topics import fill
from kafka_archiver.kafka.drain.library import why_not
from kafka_archiver.kafka.reader import read_chunks
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.native.load import SWITCH


def read(brokers: str, topic: str, partitions: int, content: str) -> str:
    """Read a topic in this process; return a line of figures."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "bench"})
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, partition))[1] for partition in range(partitions)]
    consumer.close()
    chunks = [Chunk(topic=topic, partition=p, generation=0, start=0, end=end) for p, end in enumerate(ends)]
    settings = Settings.model_validate({"content": content})
    began, cpu = time.monotonic(), time.process_time()
    rows = 0
    for _, batches in read_chunks({"bootstrap.servers": brokers}, "bench", chunks, settings):
        rows += sum(batch.num_rows for batch in batches)
    cpu, seconds = time.process_time() - cpu, time.monotonic() - began
    how = "python" if why_not() else "C"
    return f"{topic} {content:6} {how:6} {cpu / rows * 1e6:.2f} CPU s per million, {rows / seconds:,.0f} records/s"


def main(number: int) -> None:
    """Measure both readers on records of 140 B and of 1.2 KB, their values alone and whole."""
    with services(fresh=False, needed_gib=1 + number * 3000 / 2**30) as running:
        brokers = running.kafka.bootstrap_servers
        for scenario in (Scenario(size=140), Scenario()):
            topic, partitions = scenario.topic(number), scenario.partitions
            fill(brokers, topic, partitions, records(number, scenario.size, 1, partitions, False), number)
            for content in ("value", "record"):
                for reader in ("", "python"):
                    command = [sys.executable, "-m", "bench.reader", "--read", brokers, topic, str(partitions), content]
                    subprocess.run(command, env=os.environ | {SWITCH: reader}, check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.reader", description=__doc__.partition(":")[2])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument(
        "--read", nargs=4, metavar=("BROKERS", "TOPIC", "PARTITIONS", "CONTENT"), help="in this process"
    )
    options = parser.parse_args()
    if options.read:
        brokers, topic, partitions, content = options.read
        print(read(brokers, topic, int(partitions), content))
    else:
        main(options.records)

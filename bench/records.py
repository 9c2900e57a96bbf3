"""Realistic records, generated fast: a pool of orders, each combined with a unique id."""

import base64
import json
import random
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

from bench.topics import Record

# Larger than the compressors' windows (gzip 32 KiB, zstd 1 MiB), so they find no repetition.
POOL = 16_384
MS_PER_HOUR = 3_600_000
# 2026-11-21T00:00:00Z
START = 1_795_219_200_000
_TEXT = """
amber anchor apple arrow autumn basket beacon birch bottle bridge bronze button candle canvas carbon castle
cedar cherry circle cobalt copper cotton crystal desert dragon ember engine falcon feather fern flint forest
garden ginger glass granite harbor hazel helmet indigo island ivory jacket jasmine juniper kettle ladder lantern
lemon linen magnet maple marble meadow mirror needle nickel ocean olive orchid paper pebble pepper pillow pine
planet quartz rabbit ribbon river rocket saddle saffron sailor shadow silver spiral stone summer teapot thunder
timber tulip tunnel valley velvet violet walnut whistle willow window winter yellow zephyr
"""
_WORDS = _TEXT.split()
_STATUS = ("created", "paid", "packed", "shipped", "delivered", "returned")


def _order(random: random.Random) -> dict[str, object]:
    def words(number: int) -> str:
        return " ".join(random.choices(_WORDS, k=number))

    return {
        "customer": {
            "id": random.getrandbits(48),
            "name": words(2).title(),
            "token": f"{random.getrandbits(128):032x}",
        },
        "status": random.choice(_STATUS),
        "created": f"2026-11-{random.randint(1, 28):02}T{random.randint(0, 23):02}:{random.randint(0, 59):02}:00Z",
        "total": random.randint(100, 99_999) / 100,
        "items": [
            {
                "sku": f"{random.getrandbits(40):010X}",
                "title": words(3),
                "quantity": random.randint(1, 9),
                "price": random.randint(99, 99_999) / 100,
            }
            for _ in range(6)
        ],
        "address": {
            "street": f"{random.randint(1, 999)} {words(1).title()} Street",
            "zip": random.randint(10_000, 99_999),
        },
        "signature": f"{random.getrandbits(320):080x}",
    }


def _large(random: random.Random, size: int) -> str:
    order = _order(random)
    room = size - len(json.dumps(order, separators=(",", ":"))) - len(',"trace":"","note":""')
    # Two thirds of the rest are random, so that the document compresses to 44 %, as such documents usually do.
    trace = base64.b64encode(random.randbytes(max(0, room * 2 // 3) * 3 // 4)).decode()
    note = ""
    while len(note) + len(trace) < room - 8:
        note += random.choice(_WORDS) + " "
    return json.dumps(order | {"trace": trace, "note": note}, separators=(",", ":"))


def _small(random: random.Random, size: int) -> str:
    event: dict[str, Any] = {
        "sku": f"{random.getrandbits(40):010X}",
        "status": random.choice(_STATUS),
        "shop": random.choice(_WORDS),
        "price": random.randint(99, 99_999) / 100,
        "at": random.randint(1_795_000_000_000, 1_795_999_999_999),
        "note": "",
    }
    room = size - len(json.dumps(event, separators=(",", ":")))
    while len(event["note"]) < room - 4:
        event["note"] += random.choice(_WORDS) + " "
    return json.dumps(event, separators=(",", ":"))


def values(size: int) -> Iterator[bytes]:
    """An endless, reproducible stream of JSON documents of about `size` bytes, each with a unique id."""
    source = random.Random(size)
    make: Callable[[random.Random, int], str] = _large if size >= 800 else _small
    # Each document begins with {"id":"0123456789abcdef",
    tails = [make(source, size - 24)[1:].encode() for _ in range(POOL)]
    # Products with an odd multiplier modulo 2**64 are unique.
    ids = (n * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF for n in count(1))
    for number, identity in enumerate(ids):
        yield b'{"id":"%016x",%b' % (identity, tails[number % POOL])


def records(number: int, size: int, hours: int, partitions: int, skewed: bool = False) -> Iterator[Record]:
    """Records over all partitions: one hour in timestamp order, or several hours interleaved.

    :param skewed: nine of ten records go to partition 0.
    """
    for n, value in enumerate(islice(values(size), number)):
        hour = n // partitions % hours if hours > 1 else 0
        partition = n % partitions if not skewed else 0 if n % 10 else 1 + n // 10 % (partitions - 1)
        time = START + hour * MS_PER_HOUR + n * MS_PER_HOUR // number
        yield Record(partition, time, b"customer-%d" % n, value)

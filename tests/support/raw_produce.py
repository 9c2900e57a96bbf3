"""Record batches as no client makes them, in a Produce request of our own."""

import socket
import struct

import zstandard

from tests.support.topics import DAY

_TABLE = [0] * 256
for _byte in range(256):
    _crc = _byte
    for _ in range(8):
        _crc = (_crc >> 1) ^ (0x82F63B78 if _crc & 1 else 0)
    _TABLE[_byte] = _crc


def bomb(count: int, size: int) -> bytes:
    """A record batch of `count` values of `size` zeros each, by zstd: a few kilobytes for gigabytes."""
    packer, packed, piece = zstandard.ZstdCompressor(level=3).compressobj(), bytearray(), b"0" * (1 << 20)
    for number in range(count):
        head = b"\0" + _varint(0) + _varint(number) + _varint(-1) + _varint(size)
        packed += packer.compress(_varint(len(head) + size + 1) + head)
        for start in range(0, size, len(piece)):
            packed += packer.compress(piece[: size - start])
        packed += packer.compress(_varint(0))
    packed += packer.flush()
    body = struct.pack(">hiqqqhii", 4, count - 1, DAY, DAY, -1, -1, -1, count) + bytes(packed)
    tail = struct.pack(">ibI", -1, 2, _crc32c(body)) + body
    return struct.pack(">qi", 0, len(tail)) + tail


def produce_raw(port: int, topic: str, batch: bytes) -> int:
    """Append a record batch to partition 0 of a topic. Returns its first offset."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    partition = struct.pack(">iii", 1, 0, len(batch)) + batch
    body = struct.pack(">hhii", -1, -1, 120_000, 1) + name + partition
    request = struct.pack(">hhih", 0, 7, 1, 3) + b"raw" + body
    with socket.create_connection(("127.0.0.1", port), timeout=180) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answers:
            (length,) = struct.unpack(">i", answers.read(4))
            answer = answers.read(length)
    start = 4 + 4 + 2 + len(topic) + 4 + 4
    code, offset = struct.unpack(">hq", answer[start : start + 10])
    assert code == 0, f"the broker refuses the batch: error {code}"
    return int(offset)


def _varint(number: int) -> bytes:
    left, encoded = (number << 1) ^ (number >> 63), bytearray()
    while left > 127:
        encoded.append(left & 127 | 128)
        left >>= 7
    return bytes(encoded) + bytes([left])


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF

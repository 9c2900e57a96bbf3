"""Runs inside mitmproxy (mitmdump -s): parses Kafka's frames, and applies the fault from kafka_proxy.py.

Each line on standard input is a fault as JSON, or empty. The answer to each line, on standard error, is the number of
answers that matched the previous fault. (mitmproxy uses standard output itself.)
"""

import asyncio
import json
import os
import socket
import struct
import sys
from collections.abc import Iterator
from typing import Any

from mitmproxy import ctx, tcp


class Frames:
    """The frames of one direction of a connection: a length of four bytes, then so many bytes."""

    def __init__(self, head: int) -> None:
        self._head, self._size, self._left = b"", head, 0

    def touched(self, data: bytes) -> Iterator[bytes]:
        """The first bytes of every frame that has bytes in this piece of the stream."""
        if self._left:
            yield self._head
        while data:
            if not self._left and len(self._head) >= self._size:
                self._head = b""
            if self._left:
                skipped = min(self._left, len(data))
                self._left -= skipped
            else:
                skipped = min(self._size - len(self._head), len(data))
                self._head += data[:skipped]
                if len(self._head) == self._size:
                    self._left = 4 + int.from_bytes(self._head[:4], "big") - self._size
                    yield self._head
            data = data[skipped:]


class Faults:
    def __init__(self) -> None:
        self.fault: dict[str, Any] = {}
        self.happened = 0
        self.changed = asyncio.Event()

    def running(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._commanded)
        print("ready", file=sys.stderr, flush=True)

    def _commanded(self) -> None:
        line = sys.stdin.readline()
        if not line:
            # The test has ended, or was killed.
            os._exit(0)
        print(self.happened, file=sys.stderr, flush=True)
        if line.strip():
            self.fault, self.happened = json.loads(line), 0
            self.changed.set()
            self.changed = asyncio.Event()

    def tcp_start(self, flow: tcp.TCPFlow) -> None:
        flow.metadata |= {"requests": Frames(12), "answers": Frames(8), "asked": {}}

    async def tcp_message(self, flow: tcp.TCPFlow) -> None:
        message = flow.messages[-1]
        # mitmproxy would keep all messages in memory.
        flow.messages.clear()
        apis = set(self._apis(flow, message))
        fault = self.fault
        if message.from_client or not fault.get("action") or not (apis & {*fault["apis"]} or not fault["apis"]):
            return
        if fault["action"] == "corrupt" and bytes.fromhex(fault["marker"]) not in message.content:
            return
        self.happened += 1
        if fault["first"] <= self.happened <= fault["last"]:
            await getattr(self, fault["action"])(flow, message, fault)

    def _apis(self, flow: tcp.TCPFlow, message: tcp.TCPMessage) -> Iterator[int]:
        """The API keys of the requests, or of the answers, in this piece."""
        asked = flow.metadata["asked"]
        if message.from_client:
            for head in flow.metadata["requests"].touched(message.content):
                api, _, number = struct.unpack(">hhi", head[4:])
                asked[number] = api
                yield api
        else:
            yield from (
                asked.get(int.from_bytes(h[4:], "big"), -1) for h in flow.metadata["answers"].touched(message.content)
            )

    async def hold(self, flow: tcp.TCPFlow, message: tcp.TCPMessage, fault: dict[str, Any]) -> None:
        """Hold the answer, and all later ones on this connection, until the fault changes."""
        await self.changed.wait()

    async def slow(self, flow: tcp.TCPFlow, message: tcp.TCPMessage, fault: dict[str, Any]) -> None:
        """Simulate a connection with this latency and bandwidth."""
        await asyncio.sleep(fault["seconds"] + len(message.content) / fault["bytes_per_second"])

    async def corrupt(self, flow: tcp.TCPFlow, message: tcp.TCPMessage, fault: dict[str, Any]) -> None:
        """Change one bit of the marker's second byte."""
        place = message.content.index(bytes.fromhex(fault["marker"])) + 1
        content = bytearray(message.content)
        content[place] ^= 1
        message.content = bytes(content)

    async def reset(self, flow: tcp.TCPFlow, message: tcp.TCPMessage, fault: dict[str, Any]) -> None:
        """Forward half of the piece, then break the connection."""
        for handler in ctx.master.addons.get("proxyserver").connections.values():
            io = handler.transports.get(handler.client) if handler.client is flow.client_conn else None
            if io and not io.writer.is_closing():
                io.writer.write(message.content[: len(message.content) // 2])
                linger = struct.pack("ii", 1, 0)
                io.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                io.writer.transport.abort()
        message.content = b""


addons = [Faults()]

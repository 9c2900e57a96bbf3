"""The ports of a stack: fixed ones plus PORT_OFFSET for `make up`, free ones for tests."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any, ClassVar, Protocol, TypeVar

from scripts.stack.errors import StackError

HOST = "127.0.0.1"
# Below the ephemeral ports of outgoing connections, and apart from the fixed ports.
FREE = range(20_000, 32_000)
# By number: a UDP socket on the port shows other processes that the TCP port is reserved. No service uses UDP.
_handed_out: dict[int, socket.socket] = {}


class ServicePorts(Protocol):
    """A frozen dataclass with one port number per purpose; fixed ports count up from BASE in this order."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    BASE: ClassVar[int]


P = TypeVar("P", bound=ServicePorts)


def port_offset() -> int:
    """PORT_OFFSET from the environment; 0 if it is not set.

    :raises StackError: it is not a number, or moves a port out of range.
    """
    text = os.environ.get("PORT_OFFSET") or "0"
    # The base ports lie between 18080 and 18119.
    if not text.isdecimal() or int(text) > 65_535 - 18_119:
        raise StackError(f"PORT_OFFSET is {text!r}; expected a number from 0 to {65_535 - 18_119}, such as 1000")
    return int(text)


def fixed_ports(kind: type[P], offset: int) -> P:
    first = kind.BASE + offset
    return kind(*range(first, first + len(fields(kind))))


def free_ports(kind: type[P]) -> P:
    """Free ports, reserved for this process until it ends."""
    numbers: list[int] = []
    for number in random.SystemRandom().sample(FREE, len(FREE)):
        if len(numbers) == len(fields(kind)):
            break
        if not taken(number) and _claim(number):
            numbers.append(number)
    return kind(*numbers)


def _claim(number: int) -> bool:
    claim = socket.socket(type=socket.SOCK_DGRAM)
    try:
        claim.bind((HOST, number))
    except OSError:
        claim.close()
        return False
    _handed_out[number] = claim
    return True


def taken(number: int) -> bool:
    """Return True if a socket listens on the port; connections in TIME_WAIT do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, number))
        except OSError:
            return True
    return False


def require_free(service: str, numbers: Mapping[str, int]) -> None:
    """:raises StackError: one of the ports, named by purpose, is taken."""
    for purpose, number in numbers.items():
        if taken(number):
            raise StackError(
                f"port {number} is taken, and {service} needs it ({purpose.replace('_', ' ')}):"
                " stop the process that listens there, or move all ports of this stack: `make up PORT_OFFSET=1000`"
            )

"""Which ports a stack uses: fixed ones moved by PORT_OFFSET for `make up`, free ones for tests."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any, ClassVar, Protocol, TypeVar

from scripts.stack.errors import StackError

HOST = "127.0.0.1"
# Below the range from which systems take the ports of outgoing connections, and apart from the fixed ones.
FREE = range(20_000, 32_000)
# By number: a UDP socket on it, which no service here uses, tells other processes that the TCP port is spoken for.
_handed_out: dict[int, socket.socket] = {}


class ServicePorts(Protocol):
    """A frozen dataclass of port numbers, one field a purpose, counted up from BASE in that order."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    BASE: ClassVar[int]


P = TypeVar("P", bound=ServicePorts)


def port_offset() -> int:
    """PORT_OFFSET from the environment; 0 when it is not set.

    :raises StackError: it is no number, or moves a port out of range.
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
    """Ports nobody listens on now; as long as this process lives, neither it nor another one gets them again."""
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
    """Whether something listens there. (Connections that are only waiting to be forgotten do not count.)"""
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
                " stop what listens there, or move every port of this stack, as in `make up PORT_OFFSET=1000`"
            )

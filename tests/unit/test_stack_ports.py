"""Ports of the local stack: moved as one, never shared, and a taken one is named."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from scripts.stack.choices import Choices
from scripts.stack.errors import StackError
from scripts.stack.paths import ROOT
from scripts.stack.ports import HOST, port_offset, require_free
from scripts.stack.stack import Stack

pytestmark = pytest.mark.unit


def all_ports(offset: int) -> list[int]:
    services = Stack.of(Choices(offset, "")).services
    return [number for service in services for number in service.ports_needed().values()]


@pytest.mark.parametrize("offset", [100, 1000, 10_000, 37_000])
def test_an_offset_moves_every_port_and_the_two_stacks_share_none(offset: int) -> None:
    moved, here = all_ports(offset), all_ports(0)
    assert moved == [number + offset for number in here]
    assert len({*moved, *here}) == 2 * len(here)


@pytest.mark.parametrize("text", ["one", "-1", "1.5", "60000"])
def test_an_offset_that_is_no_usable_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT_OFFSET", text)
    with pytest.raises(StackError, match=f"PORT_OFFSET is '{text}'; expected a number from 0 to"):
        port_offset()


def test_the_greatest_offset_keeps_every_port_in_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT_OFFSET", "37000")
    assert max(all_ports(port_offset())) <= 65_535


TAKES = """
import sys
from dataclasses import astuple
from scripts.stack import ports
from scripts.stack.s3 import S3Ports
ports.FREE = range(32_100, 32_130)
print(*astuple(ports.free_ports(S3Ports)), flush=True)
sys.stdin.read()
"""


def test_what_one_process_was_given_no_other_one_gets_while_it_lives() -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    processes = [subprocess.Popen([sys.executable, "-c", TAKES], **pipes) for _ in range(2)]
    try:
        ports = [number for process in processes for number in process.stdout.readline().split()]
        assert len(ports) == len(set(ports)) == 20
    finally:
        for process in processes:
            process.communicate(timeout=30)


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, HOST), (socket.AF_INET, ""), (socket.AF_INET6, "::")])
def test_a_taken_port_is_named_with_who_needs_it_and_what_to_do(family: int, address: str) -> None:
    with socket.socket(family) as other:
        other.bind((address, 0))
        other.listen()
        number = other.getsockname()[1]
        with pytest.raises(StackError) as caught:
            require_free("Airflow", {"task_logs": number})
    message = str(caught.value)
    assert message.startswith(f"port {number} is taken, and Airflow needs it (task logs): ")
    assert "make up PORT_OFFSET=1000" in message
    assert "\n" not in message


def test_a_port_that_was_closed_a_moment_ago_is_free_again() -> None:
    with socket.create_server((HOST, 0)) as server:
        number = server.getsockname()[1]
        with socket.create_connection((HOST, number)) as client, server.accept()[0] as accepted:
            # The server closes first, so its side waits to be forgotten (TIME_WAIT).
            accepted.close()
            assert client.recv(1) == b""
    require_free("Kafka", {"clients": number})

"""Faults of a YAML, each with its place. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from kafka_archiver.messages.errors import ConfigError


class Fault(NamedTuple):
    """One fault. `keys`: those that lead to it, as in `source.topics`; empty: unknown. `line`: from 1; None: unknown.

    `shown`: that line, without what may be a secret.
    """

    text: str
    keys: str = ""
    line: int | None = None
    shown: str = ""


class FaultyYamlError(ConfigError):
    """A YAML is wrong. `faults`: each with its place."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(fault.text for fault in self.faults))

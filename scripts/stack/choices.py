"""The user's settings for a stack: from the environment, or from the last start of this checkout's stack."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.stack.errors import StackError
from scripts.stack.paths import LOCAL, ROOT
from scripts.stack.ports import port_offset

REMEMBERED = LOCAL / "stack.json"


@dataclass(frozen=True)
class Choices:
    port_offset: int
    archives: str
    """The directory of the archives' YAML files."""

    @classmethod
    def from_environment(cls) -> Choices:
        """:raises StackError: PORT_OFFSET is not a usable number."""
        default = ROOT / "include" / "archives"
        return cls(port_offset(), str(Path(os.environ.get("ARCHIVER_CONFIG_DIR") or default).absolute()))

    @classmethod
    def remembered(cls) -> Choices:
        """The settings of the last start; without one, those of the environment."""
        if not REMEMBERED.exists():
            return cls.from_environment()
        return cls(**json.loads(REMEMBERED.read_text()))

    def remember(self) -> None:
        REMEMBERED.write_text(json.dumps(asdict(self)))

    def require_same(self) -> None:
        """Check that the environment has the same settings as the running stack.

        :raises StackError: it has others.
        """
        asked = Choices.from_environment()
        for variable, got, running in (
            ("PORT_OFFSET", asked.port_offset, self.port_offset),
            ("ARCHIVER_CONFIG_DIR", asked.archives, self.archives),
        ):
            if os.environ.get(variable) and got != running:
                raise StackError(
                    f"this checkout's stack runs with {variable}={running}, found {got}: run `make down` first"
                )

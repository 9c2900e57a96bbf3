"""What a person chooses for a stack, and what the stack of this checkout was last started with."""

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
        """:raises StackError: PORT_OFFSET is no usable number."""
        default = ROOT / "include" / "archives"
        return cls(port_offset(), str(Path(os.environ.get("ARCHIVER_CONFIG_DIR") or default).absolute()))

    @classmethod
    def remembered(cls) -> Choices:
        """Those of the last start; of the environment when there was none."""
        if not REMEMBERED.exists():
            return cls.from_environment()
        return cls(**json.loads(REMEMBERED.read_text()))

    def remember(self) -> None:
        REMEMBERED.write_text(json.dumps(asdict(self)))

    def require_same(self) -> None:
        """For a stack that runs with these.

        :raises StackError: the environment asks for something else.
        """
        asked = Choices.from_environment()
        for variable, got, running in (
            ("PORT_OFFSET", asked.port_offset, self.port_offset),
            ("ARCHIVER_CONFIG_DIR", asked.archives, self.archives),
        ):
            if os.environ.get(variable) and got != running:
                raise StackError(
                    f"this checkout's stack runs with {variable}={running}, but {got} is asked for: `make down` first"
                )

"""Writes .local/env.sh, with which ordinary clients work in any POSIX shell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path


def env_sh(variables: Mapping[str, str], *bin_directories: Path) -> str:
    """The script. Sourcing it twice is harmless."""
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    programs = shlex.quote(":".join(map(str, bin_directories)))
    return f"""\
# Written by `make up`. Use it with: . .local/env.sh
{exports}
# Inherited values would override the keys above, or name a profile that does not exist.
unset AWS_SESSION_TOKEN AWS_PROFILE AWS_DEFAULT_PROFILE

case "${{PATH:-}}:" in
  {programs}:*) ;;
  *) PATH={programs}:${{PATH:-}} ;;
esac
export PATH
"""

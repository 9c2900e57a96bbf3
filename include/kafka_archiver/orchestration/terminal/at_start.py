"""Standard output for the data of `airflow archive …` alone, from before Airflow sets up its log.

At level DEBUG, Airflow writes lines to standard output before it loads any command, and again when it ends. The first
code of another package that Airflow loads are the entry points `airflow.policy`. This one is no policy; it only sees
from the words of the call that the command is ours. Every Airflow process loads it, and an exception here stops all of
them: so it imports next to nothing.
"""

import sys
from collections.abc import Sequence
from pathlib import PurePath

from kafka_archiver.orchestration.terminal.stdout import keep_for_data


def gives_data(call: Sequence[str]) -> bool:
    """Return True if a call, program and words, is of a command of ours. Its help stays on standard output."""
    program, *words = call or [""]
    is_ours = PurePath(program).name.removesuffix(".exe") == "airflow" and words[:1] == ["archive"] and len(words) > 1
    return is_ours and not any(word == "-h" or (len(word) > 2 and "--help".startswith(word)) for word in words)


# `airflow …` and `python -m airflow …` alike: Python puts `-m` or a path in the place of the program. A program with a
# Python within may have no words.
if gives_data(sys.orig_argv[-len(getattr(sys, "argv", ()) or ("",)) :]):
    keep_for_data()

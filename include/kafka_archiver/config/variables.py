"""Environment variables in the values of a YAML: `${NAME}`, `${NAME:-default}`; `$${` is `${` itself. Pure."""

import re
from collections.abc import Mapping

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# `$` elsewhere is itself, also `$$`: regular expressions and passwords have it.
# A default may have pairs of braces, as patterns of paths have, but no variable.
_DEFAULT = r"(?:[^{}$]|\$(?!\{)|\{[^{}]*\})*"
_PLACE = re.compile(rf"\$(\$\{{)|\$\{{(?:({NAME})(?::-({_DEFAULT}))?(\}}))?")


def expand(text: str, environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The text with the values of its variables, and the names of these variables.

    As in a shell, the default is for a variable that is missing or empty.

    :raises ValueError: a variable is missing, or `${` begins no variable. The message has no value.
    """
    names: list[str] = []

    def value(match: re.Match[str]) -> str:
        escaped, name, default, end = match.groups()
        if escaped:
            return "${"
        if not end:
            raise ValueError(
                "`${` begins an environment variable, but what follows is neither ${NAME} nor ${NAME:-default}, where "
                "the default has braces only in pairs, and no variable; write $${ for the two characters themselves"
            )
        names.append(name)
        setting = environ.get(name)
        if default is not None:
            return setting or default
        if setting is None:
            raise ValueError(
                f"the environment variable {name} is missing; set it where Airflow's scheduler, DAG processor and "
                f"workers run, or give a default: ${{{name}:-default}}"
            )
        return setting

    return _PLACE.sub(value, text), tuple(names)


def is_one_variable(text: str) -> bool:
    """Return True if the text is one variable and nothing else."""
    return re.fullmatch(rf"\$\{{{NAME}(:-{_DEFAULT})?\}}", text) is not None

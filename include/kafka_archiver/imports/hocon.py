"""The part of HOCON that an application.conf of a service has: blocks, `key = value`, comments, references. Pure."""

import re

from kafka_archiver.messages.errors import ConfigError

_OPEN = re.compile(r"([\w.\-\"]+)\s*[:=]?\s*\{")
# YAML has `key: {`, HOCON also `key {`.
_BLOCK = re.compile(r"[\w.\-\"]+\s*\{")
_PAIR = re.compile(r"([\w.\-\"]+)\s*[:=]\s*(.*)", re.DOTALL)
# A comment begins outside of quotes; an address has // behind a colon.
_COMMENT = re.compile(r"(\"[^\"\n]*\")|(?<!:)//[^\n]*|#[^\n]*")
_OPTIONAL = re.compile(r"\$\{\?[\w.]+\}")
_REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*)\}")


def is_hocon(text: str) -> bool:
    """Return True if a text that is no JSON has blocks in braces."""
    return any(_BLOCK.fullmatch(line.strip()) for line in _COMMENT.sub(r"\1", text).splitlines())


def read_hocon(text: str, file: str) -> dict[str, str]:
    """Return the values by their whole paths, as `app.id`.

    A reference to an environment variable that need not be there (`${?NAME}`) keeps the value before it; one that has
    to be there is `${env:NAME}`, as Kafka Connect writes it.

    :raises ConfigError: a brace has no other brace. The message has no value.
    """
    values: dict[str, str] = {}
    blocks: list[str] = []
    for number, line in enumerate(_COMMENT.sub(r"\1", text).splitlines(), start=1):
        stripped = line.strip().rstrip(",")
        if opened := _OPEN.fullmatch(stripped):
            blocks.append(_plain(opened[1]))
        elif stripped == "}" and blocks:
            blocks.pop()
        elif pair := _PAIR.fullmatch(stripped):
            value = _plain(pair[2].strip())
            if not _OPTIONAL.fullmatch(value):
                values[".".join((*blocks, _plain(pair[1])))] = _REFERENCE.sub(r"${env:\1}", value)
        elif stripped and "+=" not in stripped:
            raise ConfigError(f"{file}: not HOCON: line {number}: expected a block, `key = value` or a brace")
    if blocks:
        raise ConfigError(f"{file}: not HOCON: the brace of {'.'.join(blocks)} has no other brace")
    return values


def _plain(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text

"""Text that others wrote (records, clients, stores, other programs), as it may stand in our messages. Pure."""

import re

_MOST = 300
# Of the private use area, which `foreign` shows by number.
_BEGIN, _END = "\ue000", "\ue001"
# `<!channel>`, `<http://…|text>`: Slack's and Google's.
_ANGLES = str.maketrans("<>", "‹›")
# Discord's and Mattermost's `@everyone`: a sign without width separates it.
_MENTION, _JOINER = re.compile(r"@(?=\w)"), "\u2060"
_MARKED = re.compile(f"{_BEGIN}[^{_END}]*{_END}")


def foreign(text: str, most: int = _MOST) -> str:
    """Return the text so that it is only text: no command, no new line, no change of direction; cut to a length.

    Our messages name commands in backticks, so a backtick becomes an apostrophe.

    :param most: characters.
    """
    shown = text[: most + 1].replace("`", "'")
    if not shown.isprintable():
        shown = "".join(map(_shown, shown))
    return shown if len(text) <= most else f"{shown[:most]}…"


def in_one_line(text: str) -> str:
    """Return the text as one line without control characters, such as those that a terminal obeys."""
    return text if text.isprintable() else "".join(map(_shown, text))


def without_markup(text: str) -> str:
    """Return the text so that chat services and Markdown make no link, picture or mention of it.

    Commands in it stay as they are: ours have none of these signs.
    """
    return _MENTION.sub(f"@{_JOINER}", text.translate(_ANGLES).replace("](", "] ("))


def record_value(text: str, most: int = _MOST) -> str:
    """Return a record's value for a reason, as `foreign`, between marks that `without_marks` takes away."""
    return f"{_BEGIN}{foreign(text, most)}{_END}"


def foreign_beside_values(reason: str) -> str:
    """Return a reason as `foreign` does, with the marks of the values in it."""
    values = [*_MARKED.findall(reason), ""]
    return "".join(foreign(text) + value for text, value in zip(_MARKED.split(reason), values, strict=True))


def without_marks(reason: str, shows_values: bool) -> str:
    """Return a reason with its values, or without.

    :param shows_values: an encrypted archive shows none: reasons are in logs, and in Airflow's database.
    """
    if shows_values:
        return reason.replace(_BEGIN, "").replace(_END, "")
    return _MARKED.sub("(not shown: the archive is encrypted)", reason)


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character in "\t\n\r" else f"\\u{ord(character):04x}"

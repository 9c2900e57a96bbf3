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
# Characters of Unicode 15.0, which Python 3.12 calls printable and Python 3.11 does not know. Reasons are part of dead
# letters, which no other Python may write with other bytes.
_LATER = re.compile(
    "["
    "\u0cf3\u0ece\U00010efd-\U00010eff\U0001123f-\U00011241\U00011b00-\U00011b09\U00011f00-\U00011f10"
    "\U00011f12-\U00011f3a\U00011f3e-\U00011f59\U0001342f\U00013440-\U00013455\U0001b132\U0001b155"
    "\U0001d2c0-\U0001d2d3\U0001df25-\U0001df2a\U0001e030-\U0001e06d\U0001e08f\U0001e4d0-\U0001e4f9"
    "\U0001f6dc\U0001f774-\U0001f776\U0001f77b-\U0001f77f\U0001f7d9\U0001fa75-\U0001fa77"
    "\U0001fa87-\U0001fa88\U0001faad-\U0001faaf\U0001fabb-\U0001fabd\U0001fabf\U0001face-\U0001facf"
    "\U0001fada-\U0001fadb\U0001fae8\U0001faf7-\U0001faf8\U0002b739\U00031350-\U000323af"
    "]"
)


def foreign(text: str, most: int = _MOST) -> str:
    """Return the text so that it is only text: no command, no new line, no change of direction; cut to a length.

    Our messages name commands in backticks, so a backtick becomes an apostrophe.

    :param most: characters.
    """
    shown = text[: most + 1].replace("`", "'")
    if not _is_printable(shown):
        shown = "".join(map(_shown, shown))
    return shown if len(text) <= most else f"{shown[:most]}…"


def in_one_line(text: str) -> str:
    """Return the text as one line without control characters, such as those that a terminal obeys."""
    return text if _is_printable(text) else "".join(map(_shown, text))


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


def _is_printable(text: str) -> bool:
    return text.isprintable() and (text.isascii() or not _LATER.search(text))


def _shown(character: str) -> str:
    if _is_printable(character):
        return character
    return " " if character in "\t\n\r" else f"\\u{ord(character):04x}"

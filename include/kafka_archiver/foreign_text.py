"""Text that others wrote (records, clients, stores, other programs), as it may stand in our messages. Pure."""

_MOST = 300


def foreign(text: str, most: int = _MOST) -> str:
    """Return the text so that it is only text: no command, no new line, no change of direction; cut to a length.

    Our messages name commands in backticks, so a backtick becomes an apostrophe.

    :param most: characters.
    """
    shown = text[: most + 1].replace("`", "'")
    if not shown.isprintable():
        shown = "".join(map(_shown, shown))
    return shown if len(text) <= most else f"{shown[:most]}…"


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character in "\t\n\r" else f"\\u{ord(character):04x}"

"""A stream of bytes cut where its rows end."""

from collections.abc import Callable, Iterator

from kafka_archiver.messages.errors import IntegrityError


def whole(pieces: Iterator[bytes], end_of: Callable[[bytes], int], what: str, name: str) -> Iterator[bytes]:
    """The same bytes in pieces of whole rows.

    :param end_of: where in a piece its last row ends; 0 if none does. It is called once for each piece, in order.
    :param what, name: a row, and the object's key, for the error.
    :raises IntegrityError: the stream ends within a row.
    """
    pending: list[bytes] = []
    for piece in pieces:
        end = end_of(piece)
        if end:
            yield b"".join([*pending, piece[:end]])
            pending = []
        if end < len(piece):
            pending.append(piece[end:])
    if pending:
        raise IntegrityError(f"{name} ends in the middle of a {what}")

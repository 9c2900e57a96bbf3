"""Why a reader could not read a column of a record, in words; a dead letter has these words as its reason."""

# The words, by which a replay of dead letters recognises the column. Stored letters have them: do not change them.
HEADER_KEY = "a header has a key that is not UTF-8, which the native reader cannot read"
OLD_TIME = "its time is before 1901, which Spark's Kafka source does not give exactly"
UNREADABLE = {HEADER_KEY: "headers", OLD_TIME: "timestamp"}


def unread_column(error: str) -> dict[str, str] | None:
    """The value of `formats.base.UNREAD` for a dead letter with this reason; None: the letter has every column."""
    for words, column in UNREADABLE.items():
        if words in error:
            return {
                "column": column,
                "reason": f"{words}, so its dead letter lacks the {column}; `airflow archive rebuild` with the other "
                "`source.reader` reads the record again, if Kafka still has it",
            }
    return None

"""Tables in a temporary file."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kafka_archiver.context.temporary_tables import TemporaryTables


class Numbers(TemporaryTables):
    tables = "CREATE TABLE numbers (number INTEGER);"

    def count(self) -> int:
        [count] = self._db.execute("SELECT count(*) FROM numbers").fetchone()
        return int(count)


def test_rows_of_several_threads_are_one_transaction_in_a_file_that_is_gone_afterwards() -> None:
    with Numbers.open() as numbers, ThreadPoolExecutor(1) as pool:
        pool.submit(numbers._db.execute, "INSERT INTO numbers VALUES (1)").result()
        numbers._db.execute("INSERT INTO numbers VALUES (2)")
        # Each row as a transaction of its own takes fifteen times as long.
        assert numbers._db.in_transaction
        assert numbers.count() == 2
        [(_, _, file)] = numbers._db.execute("PRAGMA database_list")
        assert Path(file).is_file()
    assert not Path(file).exists()

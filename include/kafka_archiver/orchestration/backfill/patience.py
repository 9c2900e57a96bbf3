"""Asking the metadata database again.

SQLite refuses at once ("database is locked") when another process wrote between our read and our write, and the
scheduler writes all the time; any database may restart while a long backfill is followed.
"""

from collections.abc import Callable
from typing import TypeVar

from airflow.utils.sqlalchemy import is_lock_not_available_error
from sqlalchemy.exc import OperationalError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

Result = TypeVar("Result")


def patiently(ask: Callable[[], Result], seconds: float) -> Result:
    """What `ask` gives; asked again for so long while the database cannot answer."""
    return _again(ask, seconds, lambda error: isinstance(error, OperationalError))


def unless_locked(write: Callable[[], Result], seconds: float) -> Result:
    """What `write` gives; tried again for so long while others hold the lock, since then nothing was written."""
    return _again(
        write, seconds, lambda error: isinstance(error, OperationalError) and is_lock_not_available_error(error)
    )


def _again(function: Callable[[], Result], seconds: float, when: Callable[[BaseException], bool]) -> Result:
    retrying = Retrying(
        retry=retry_if_exception(when),
        stop=stop_after_delay(seconds),
        wait=wait_random_exponential(multiplier=0.2, max=10),
        reraise=True,
    )
    return retrying(function)

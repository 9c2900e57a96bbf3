"""Retry queries of the metadata database: it may restart while a command follows a long backfill."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import OperationalError
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

Result = TypeVar("Result")
# While following runs: a restarted database is back by then.
FOLLOWING_SECONDS = 600


def retry_while_down(ask: Callable[[], Result], seconds: float) -> Result:
    """Return the result of `ask`, which must be repeatable. Retry for so long while the database cannot answer."""
    retrying = Retrying(
        retry=retry_if_exception_type(OperationalError),
        stop=stop_after_delay(seconds),
        wait=wait_random_exponential(multiplier=0.2, max=10),
        reraise=True,
    )
    return retrying(ask)

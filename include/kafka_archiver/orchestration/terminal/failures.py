"""Report a command's error."""

import functools
import sys
from argparse import Namespace
from collections.abc import Callable

from kafka_archiver.messages.errors import ArchiverError


def report_errors(function: Callable[[Namespace], None]) -> Callable[[Namespace], None]:
    """On an ArchiverError, print the message alone and exit with 1; other errors keep their traceback."""

    @functools.wraps(function)
    def command(args: Namespace) -> None:
        try:
            function(args)
        except ArchiverError as error:
            print(error, file=sys.stderr)
            raise SystemExit(1) from error

    return command

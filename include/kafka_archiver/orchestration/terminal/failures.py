"""How a command says that it could not do what it was asked."""

import functools
import sys
from argparse import Namespace
from collections.abc import Callable

from kafka_archiver.errors import ArchiverError


def plainly(function: Callable[[Namespace], None]) -> Callable[[Namespace], None]:
    """End the command with the message alone and code 1 on an error raised on purpose; others keep their traceback."""

    @functools.wraps(function)
    def command(args: Namespace) -> None:
        try:
            function(args)
        except ArchiverError as error:
            print(error, file=sys.stderr)
            raise SystemExit(1) from error

    return command

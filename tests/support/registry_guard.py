"""What stands before a registry that lets in only some: it asks for a user and password, over TLS if it should."""

import urllib.error
import urllib.request
from base64 import b64encode
from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.http_servers import Handler, serving


def guarding(url: str, user_info: str, certificate: Path | None = None) -> AbstractContextManager[str]:
    """Pass GETs on to the registry at `url`. Yields the guard's URL; with a certificate it speaks TLS."""

    class Guard(Handler):
        def do_GET(self) -> None:  # noqa: N802
            if self.headers.get("Authorization") != f"Basic {b64encode(user_info.encode()).decode()}":
                self.answer(401, b"<html>who are you?</html>", "text/html")
                return
            try:
                with urllib.request.urlopen(f"{url}{self.path}", timeout=30) as response:
                    self.answer(response.status, response.read())
            except urllib.error.HTTPError as error:
                self.answer(error.code, error.read())

    return serving(Guard, certificate)

"""A proxy for a schema registry that requires user and password, optionally over TLS."""

import urllib.error
import urllib.request
from base64 import b64encode
from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.http_servers import Handler, serving


def guarding(url: str, user_info: str, certificate: Path | None = None) -> AbstractContextManager[str]:
    """Forward GETs to the registry at `url`. Yields the proxy's URL, with TLS if there is a certificate."""

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

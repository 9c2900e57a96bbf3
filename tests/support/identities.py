"""The services that give out credentials, in a thread, on a real socket: STS, a machine's metadata, a container's.

They speak the real protocols, so boto3 itself is the client.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from json import dumps
from urllib.parse import parse_qs

from tests.support.http_servers import Handler, serving

ROLE = "/latest/meta-data/iam/security-credentials/"


@dataclass
class Identities:
    """:ivar asked: the parameters of each request to STS. :ivar issued: how many credentials were given out.
    :ivar seconds: how long credentials live. botocore renews them if less than 10 or 15 minutes are left.
    """

    url: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    issued: int = 0
    seconds: int = 3600
    authorizations: list[str] = field(default_factory=list)


@contextmanager
def identities() -> Iterator[Identities]:
    state = Identities()

    class Service(Handler):
        def do_POST(self) -> None:  # noqa: N802 - the base class calls it so
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked = {name: value for name, [value] in parse_qs(body).items()}
            state.asked.append(asked)
            state.authorizations.append(self.headers.get("Authorization", ""))
            fields = "".join(f"<{name}>{value}</{name}>" for name, value in _fresh("Sts").items())
            action = asked["Action"]
            self.answer(
                200,
                f"<{action}Response><{action}Result><Credentials>{fields}</Credentials></{action}Result>"
                f"</{action}Response>".encode(),
                "text/xml",
            )

        def do_PUT(self) -> None:  # noqa: N802 - the base class calls it so
            self.answer(200, b"session-of-metadata")

        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            if self.path == "/container":
                state.authorizations.append(self.headers.get("Authorization", ""))
                self.answer(200, dumps(_of_metadata("Container")).encode())
            elif self.path == ROLE:
                self.answer(200, b"the-role", "text/plain")
            elif self.path == f"{ROLE}the-role" and self.headers["x-aws-ec2-metadata-token"] == "session-of-metadata":
                self.answer(200, dumps({"Code": "Success", "Type": "AWS-HMAC", **_of_metadata("Machine")}).encode())
            else:
                self.answer(404)

    def _fresh(of: str) -> dict[str, str]:
        state.issued += 1
        until = datetime.now(UTC) + timedelta(seconds=state.seconds)
        return {
            "AccessKeyId": f"{of}Key{state.issued}",
            "SecretAccessKey": f"{of}Secret{state.issued}",
            "SessionToken": f"{of}Token{state.issued}",
            "Expiration": f"{until:%Y-%m-%dT%H:%M:%SZ}",
        }

    def _of_metadata(of: str) -> dict[str, str]:
        fresh = _fresh(of)
        return {**fresh, "Token": fresh["SessionToken"]}

    with serving(Service) as url:
        state.url = url
        yield state

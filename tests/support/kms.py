"""A KMS in a thread, on a real socket: boto3's client talks to it. It keeps the keys' names, and refuses like KMS."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.http_servers import Handler, serving

ARN = "arn:aws:kms:eu-west-1:123456789012:key/"


@dataclass
class Kms:
    """:ivar keys: the names of the keys that are enabled. :ivar failures: codes for the next requests.
    :ivar asked: the operations, with their parameters.
    """

    url: str = ""
    keys: set[str] = field(default_factory=lambda: {"first", "second"})
    failures: list[str] = field(default_factory=list)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def answer(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """:raises LookupError: the code of the error."""
        self.asked.append((operation, request))
        if self.failures:
            raise LookupError(self.failures.pop(0))
        name = request["KeyId"].removeprefix(ARN)
        if name not in self.keys:
            raise LookupError("NotFoundException")
        if operation == "Encrypt":
            blob = json.dumps([name, request["Plaintext"][::-1], request["EncryptionContext"]]).encode()
            return {"CiphertextBlob": base64.b64encode(blob).decode(), "KeyId": f"{ARN}{name}"}
        key, plain, context = json.loads(base64.b64decode(request["CiphertextBlob"]))
        if (key, context) != (name, request["EncryptionContext"]):
            raise LookupError("InvalidCiphertextException")
        return {"Plaintext": plain[::-1], "KeyId": f"{ARN}{name}"}


@contextmanager
def a_kms() -> Iterator[Kms]:
    state = Kms()

    class Service(Handler):
        def do_POST(self) -> None:  # noqa: N802 - the base class calls it so
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                response = state.answer(self.headers["X-Amz-Target"].removeprefix("TrentService."), request)
                self.answer(200, json.dumps(response).encode(), "application/x-amz-json-1.1")
            except LookupError as error:
                code = str(error.args[0])
                status = 500 if code == "KMSInternalException" else 400
                self.answer(status, json.dumps({"__type": code, "message": "told to"}).encode())

    with serving(Service) as url:
        state.url = url
        yield state

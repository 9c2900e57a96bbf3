"""A schema registry with modes, as Confluent's API describes them: the real registry of the tests has none."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support.http_servers import Handler, serving

OPERATION_NOT_PERMITTED, NO_SUBJECT, NO_VERSION, NO_SCHEMA, NO_MODE = 42205, 40401, 40402, 40403, 40409


class RefusalError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.answer = status, {"error_code": code, "message": message}


@dataclass
class RegistryTwin:
    """`subjects`: id by version. `schemas`: the bodies by id. `modes`: of subjects of their own."""

    subjects: dict[str, dict[int, int]] = field(default_factory=dict)
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serve it. Yields its URL."""
        twin = self

        class Routes(Handler):
            def _handle(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                address = urlsplit(self.path)
                twin.calls.append(f"{self.command} {unquote(address.path)}")
                try:
                    status, answer = 200, twin.handle(self.command, address.path.split("/")[1:], address.query, body)
                except RefusalError as error:
                    status, answer = error.answer
                self.answer(status, json.dumps(answer).encode())

            do_GET = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815

        with serving(Routes) as url:
            yield url

    def handle(self, method: str, path: list[str], query: str, body: Any) -> Any:
        names = [unquote(name) for name in path]
        match method, names:
            case "GET", ["subjects", subject, "versions"]:
                return sorted(self._subject(subject))
            case "GET", ["subjects", subject, "versions", number]:
                return self._version(subject, int(number))
            case "POST", ["subjects", subject, "versions"]:
                return {"id": self._register(subject, dict(body))}
            case "GET", ["schemas", "ids", number]:
                if int(number) not in self.schemas:
                    raise RefusalError(404, NO_SCHEMA, "Schema not found")
                return self.schemas[int(number)]
            case "GET", ["mode", subject]:
                if subject not in self.modes:
                    raise RefusalError(404, NO_MODE, f"Subject '{subject}' does not have subject-level mode configured")
                return {"mode": self.modes[subject]}
            case "PUT", ["mode", subject]:
                if body["mode"] == "IMPORT" and self.subjects.get(subject) and query != "force=true":
                    raise RefusalError(422, OPERATION_NOT_PERMITTED, "Cannot import since found existing subjects")
                self.modes[subject] = body["mode"]
                return body
            case "DELETE", ["mode", subject]:
                if subject not in self.modes:
                    raise RefusalError(404, NO_SUBJECT, "Subject not found")
                return {"mode": self.modes.pop(subject)}
        raise RefusalError(404, 404, "HTTP 404 Not Found")

    def _subject(self, subject: str) -> dict[int, int]:
        if subject not in self.subjects:
            raise RefusalError(404, NO_SUBJECT, f"Subject '{subject}' not found.")
        return self.subjects[subject]

    def _version(self, subject: str, number: int) -> dict[str, Any]:
        versions = self._subject(subject)
        if number not in versions:
            raise RefusalError(404, NO_VERSION, f"Version {number} not found.")
        return {"subject": subject, "version": number, "id": versions[number], **self.schemas[versions[number]]}

    def _register(self, subject: str, body: dict[str, Any]) -> int:
        number, version = body.pop("id", None), body.pop("version", None)
        versions = self.subjects.get(subject, {})
        # Confluent's registry looks first whether the subject has the schema, another one looks at the mode first.
        if (number is not None) != (self.modes.get(subject) == "IMPORT"):
            raise RefusalError(422, OPERATION_NOT_PERMITTED, f"Subject {subject} is in another mode")
        for known in versions.values():
            if self.schemas[known] == body and number in (None, known):
                return known
        if number is None:
            same = [known for known, schema in self.schemas.items() if schema == body]
            number, version = same[0] if same else max(self.schemas, default=0) + 1, max(versions, default=0) + 1
        elif self.schemas.get(number, body) != body:
            raise RefusalError(422, OPERATION_NOT_PERMITTED, f"Overwrite new schema with id {number} is not permitted.")
        self.schemas[number] = body
        self.subjects.setdefault(subject, {})[version] = number
        return number

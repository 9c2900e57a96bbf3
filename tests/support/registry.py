"""The schema registry of the stack, and what a test does to it."""

import json
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from scripts.stack import registry


class RegistryServer(registry.RegistryServer):
    """A real schema registry."""

    def register(
        self,
        subject: str,
        schema: Mapping[str, Any] | str,
        kind: str = "AVRO",
        imports: Sequence[tuple[str, str, int]] = (),
    ) -> int:
        """Register a schema. Returns its id. `imports`: name, subject and version of each reference."""
        references = [{"name": name, "subject": where, "version": number} for name, where, number in imports]
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": kind, "references": references}
        return int(self._ask("POST", f"subjects/{subject}/versions", body)["id"])

    def demand(self, compatibility: str) -> None:
        """Set the compatibility level of all subjects."""
        self._ask("PUT", "config", {"compatibility": compatibility})

    def delete(self, what: str) -> None:
        """Delete a subject, or one version: `orders-value`, `orders-value/versions/1`, …`?permanent=true`."""
        self._ask("DELETE", f"subjects/{what}")

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

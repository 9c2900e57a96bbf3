"""Airflow's REST API."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from scripts.stack.errors import StackError


class RestApi:
    """That of one Airflow, which lets everybody in. :param url: where its web pages begin."""

    def __init__(self, url: str) -> None:
        self.url = url
        # No proxy stands between us and this machine.
        self._client = httpx.Client(base_url=url, trust_env=False, timeout=60, headers={"Accept": "application/json"})

    def ask(
        self, method: str, path: str, body: object = None, *, missing_ok: bool = False, login: bool = True, **query: Any
    ) -> Any:
        """What it answers, from JSON; None where it says nothing, and for a 404 that is all right.

        :param path: as `address` makes it. :param login: health is told to everybody.
        :raises StackError: it does not answer, or refuses.
        """
        if login and "Authorization" not in self._client.headers:
            token = self._send("GET", "/auth/token", None, {}, False)["access_token"]
            self._client.headers["Authorization"] = f"Bearer {token}"
        return self._send(method, f"/api/v2{path}", body, query, missing_ok)

    def _send(self, method: str, path: str, body: object, query: dict[str, Any], missing_ok: bool) -> Any:
        try:
            answer = self._client.request(method, path, json=body, params=query or None)
        except httpx.HTTPError as error:
            raise StackError(f"Airflow at {self.url} does not answer: {error}") from error
        if answer.status_code == httpx.codes.NOT_FOUND and missing_ok:
            return None
        try:
            told = answer.json() if answer.content else None
        except ValueError:
            told = None
        if answer.is_error or (answer.content and told is None):
            raise StackError(f"Airflow: {method} {answer.url}: {answer.status_code} {answer.text}")
        return told


def address(*parts: str) -> str:
    """The path to one thing, whatever the names on the way to it are made of."""
    return "".join(f"/{quote(part, safe='~')}" for part in parts)

"""Airflow's REST API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
from tenacity import retry, retry_if_exception_type, retry_if_result, stop_after_attempt, wait_exponential

from scripts.stack.errors import StackError


def _is_rolled_back(answer: httpx.Response) -> bool:
    """Return True if Airflow's database refused the request's transaction, as SQLite does when two processes write."""
    return answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR and '"Database error"' in answer.text


class RestApi:
    """The REST API of one Airflow without passwords. :param url: the base URL of its web pages."""

    def __init__(self, url: str) -> None:
        self.url = url
        # trust_env=False: no proxy for this machine.
        self._client = httpx.Client(base_url=url, trust_env=False, timeout=60, headers={"Accept": "application/json"})

    def ask(
        self, method: str, path: str, body: object = None, *, missing_ok: bool = False, login: bool = True, **query: Any
    ) -> Any:
        """The answer's JSON; None for an empty answer, and for a 404 with `missing_ok`.

        :param path: as `address` makes it. :param login: the health endpoint needs no login.
        :raises StackError: Airflow does not answer, or refuses.
        """
        if login and "Authorization" not in self._client.headers:
            token = self._send("GET", "/auth/token", None, {}, False)["access_token"]
            self._client.headers["Authorization"] = f"Bearer {token}"
        return self._send(method, f"/api/v2{path}", body, query, missing_ok)

    def _send(self, method: str, path: str, body: object, query: dict[str, Any], missing_ok: bool) -> Any:
        request = self._patient if method == "GET" else self._client.request
        try:
            answer = self._accepted(request, method, path, json=body, params=query or None)
        except httpx.HTTPError as error:
            raise StackError(f"Airflow at {self.url} does not answer: {error}") from error
        if answer.status_code == httpx.codes.NOT_FOUND and missing_ok:
            return None
        try:
            document = answer.json() if answer.content else None
        except ValueError:
            document = None
        if answer.is_error or (answer.content and document is None):
            raise StackError(f"Airflow: {method} {answer.url}: {answer.status_code} {answer.text}")
        return document

    @staticmethod
    @retry(
        retry=retry_if_result(_is_rolled_back),
        stop=stop_after_attempt(6),
        wait=wait_exponential(multiplier=0.5, max=8),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )
    def _accepted(request: Callable[..., httpx.Response], *arguments: Any, **options: Any) -> httpx.Response:
        """Send a request again whose transaction was rolled back: nothing came of it."""
        return request(*arguments, **options)

    @retry(retry=retry_if_exception_type(httpx.ReadTimeout), stop=stop_after_attempt(3), reraise=True)
    def _patient(self, *request: Any, **options: Any) -> httpx.Response:
        """A busy machine may take more than a minute for an answer. A question can be asked again."""
        return self._client.request(*request, **options)


def address(*parts: str) -> str:
    """The path of a resource, with quoted parts."""
    return "".join(f"/{quote(part, safe='~')}" for part in parts)

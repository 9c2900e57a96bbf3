"""The client of Airflow's REST API asks again after a timeout, and repeats a request of which nothing came."""

import httpx
import pytest

from scripts.stack.errors import StackError
from scripts.stack.rest import RestApi


def api(*answers: httpx.Response | Exception) -> tuple[RestApi, list[str]]:
    """A client whose server gives these answers, and the methods of the requests that it got."""
    left, asked = list(answers), []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        response = left.pop(0)
        if isinstance(response, Exception):
            raise response
        return response

    rest_api = RestApi("http://airflow")
    rest_api._client = httpx.Client(base_url=rest_api.url, transport=httpx.MockTransport(answer))
    return rest_api, asked


def test_a_question_is_asked_again_after_a_timeout() -> None:
    client, asked = api(*[httpx.ReadTimeout("slow")] * 2, httpx.Response(200, json={"a": 1}))
    assert client.ask("GET", "/dags", login=False) == {"a": 1}
    assert asked == ["GET"] * 3


@pytest.mark.parametrize(
    ("method", "error", "times"),
    [
        ("GET", httpx.ReadTimeout("slow"), 3),
        ("GET", httpx.ConnectError("refused"), 1),
        ("POST", httpx.ReadTimeout("slow"), 1),
    ],
)
def test_then_it_gives_up(method: str, error: Exception, times: int) -> None:
    client, asked = api(*[error] * 5)
    with pytest.raises(StackError, match="does not answer"):
        client.ask(method, "/dags", login=False)
    assert asked == [method] * times


ROLLED_BACK = httpx.Response(500, json={"detail": {"reason": "Database error", "orig_error": "hidden"}})


@pytest.mark.parametrize("method", ["PATCH", "POST"])
def test_a_request_that_the_database_rolled_back_is_sent_again(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RestApi._accepted.retry, "sleep", lambda seconds: None)
    client, asked = api(ROLLED_BACK, httpx.Response(200, json={"a": 1}))
    assert client.ask(method, "/connections", {}, login=False) == {"a": 1}
    assert asked == [method] * 2

    client, asked = api(*[ROLLED_BACK] * 7)
    with pytest.raises(StackError, match="Database error"):
        client.ask(method, "/connections", {}, login=False)
    assert asked == [method] * 6

    client, asked = api(httpx.Response(500, text="another fault"), ROLLED_BACK)
    with pytest.raises(StackError, match="another fault"):
        client.ask(method, "/connections", {}, login=False)
    assert asked == [method]

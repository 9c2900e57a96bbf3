"""The client of a schema registry: what it makes of settings and of odd answers, and that no secret is said."""

import httpx
import pytest

from kafka_archiver.messages.errors import ArchiverError, ConfigError, PermanentError, TransientError
from kafka_archiver.model.schemas import Reference, Schema, SubjectVersion
from kafka_archiver.records.decode.frames import schema_id
from kafka_archiver.records.decode.schema_registry import Registry
from kafka_archiver.records.decode.schema_registry_requests import Server

pytestmark = pytest.mark.unit

URL = "http://registry:8081"


def answering(*answers: httpx.Response | Exception) -> Registry:
    """A registry that gives these answers, one after the other."""
    left = iter(answers)

    def answer(_: httpx.Request) -> httpx.Response:
        reply = next(left)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return Registry(Server(URL, httpx.Client(transport=httpx.MockTransport(answer))))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\0\0\0\0\7x", 7),
        (b"\0\1\2\3\4", 0x01020304),
        (b"\0\0\0\0", None),
        (b"\1\0\0\0\7x", None),
        (b'{"a": 1}', None),
        (b"", None),
    ],
)
def test_framed_bytes_begin_with_the_id_of_their_schema(data: bytes, expected: int | None) -> None:
    assert schema_id(data) == expected


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "`url` is missing or not valid; expected one like https://registry:8081"),
        ({"url": "registry:8081"}, "`url` is missing or not valid"),
        ({"url": "ftp://registry"}, "`url` is missing or not valid"),
        ({"url": "http://a:hunter2"}, "`url` is missing or not valid"),
        ({"url": "http://a:1,http://b:1"}, "`url` is missing or not valid"),
        ({"url": "http://user:hunter2@registry"}, "the `url` has credentials; put them in `basic.auth.user.info`"),
        ({"url": URL, "basic.auth.user.info": "hunter2"}, "`basic.auth.user.info` has no colon; expected user:passw"),
        ({"url": URL, "verify": "hunter2"}, "expected url, basic.auth.user.info, ssl.ca.location, .*; found verify"),
        ({"url": URL, "ssl.ca.location": "/no/such/file.pem"}, r"cannot be read as PEM: \[Errno 2\] No such file"),
        ({"url": URL, "ssl.ca.location": __file__}, "`ssl.ca.location`, .* cannot be read as PEM"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_expected(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^source.registry: .*{message}") as caught:
        Registry.of(properties)
    assert "hunter2" not in str(caught.value)


def test_a_registry_does_not_show_its_credentials() -> None:
    assert "hunter2" not in repr(Registry.of({"url": f"{URL}/", "basic.auth.user.info": "u:hunter2"}))


def test_what_it_answers() -> None:
    registry = answering(
        httpx.Response(200, json={"compatibilityLevel": "FULL"}),
        # Confluent's registry says no type where it is Avro.
        httpx.Response(200, json={"schema": '"int"'}),
        httpx.Response(200, json={"schema": "{}", "schemaType": "JSON", "references": []}),
        httpx.Response(404, json={"error_code": 40403, "message": "Schema 7 not found"}),
    )
    assert registry.compatibility() == "FULL"
    assert [registry.schema(n) for n in (1, 2, 7)] == [
        Schema(kind="AVRO", text='"int"'),
        Schema(kind="JSON", text="{}"),
        None,
    ]


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (httpx.Response(401, text="<html>"), PermanentError, r"needs credentials \(HTTP 401\)"),
        (httpx.Response(403, json={}), PermanentError, r"needs credentials \(HTTP 403\)"),
        (httpx.Response(404, text="not here"), PermanentError, r"at http://registry:8081 is no schema registry \(HTTP"),
        (httpx.Response(404, json={"error_code": 404}), PermanentError, "is no schema registry"),
        (httpx.Response(302, headers={"Location": "/login"}), PermanentError, r"is no schema registry \(HTTP 302\)"),
        (httpx.Response(200, text="<html>hello</html>"), PermanentError, r"is no schema registry \(HTTP 200\)"),
        (httpx.Response(200, json=["orders"]), PermanentError, "is no schema registry"),
        (httpx.Response(200, json={"status": "up"}), PermanentError, "its answer has no `schema`"),
        (httpx.Response(429, json={}), TransientError, r"is not available at the moment \(HTTP 429\)"),
        (httpx.Response(503, text="<html>"), TransientError, r"is not available at the moment \(HTTP 503\)"),
        (httpx.RemoteProtocolError("illegal"), PermanentError, "it is HTTPS and the URL has http"),
        (httpx.ConnectError("refused"), TransientError, r"no answer from .*8081; check .* \(connect error: refused\)"),
        (httpx.ReadTimeout("timed out"), TransientError, r"no answer from .*8081 within 5 s; check"),
    ],
)
def test_what_is_wrong_is_said_and_whether_it_may_pass(
    answer: httpx.Response | Exception, kind: type[ArchiverError], message: str
) -> None:
    with pytest.raises(ArchiverError, match=message) as caught:
        answering(answer).schema(1)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)


def version(number: int, **more: object) -> httpx.Response:
    return httpx.Response(200, json={"id": 10 + number, "version": number, "schema": f"v{number}", **more})


def importing(subject: str) -> dict[str, object]:
    return {"references": [{"name": "x.Money", "subject": subject, "version": 1}]}


def test_versions_are_complete_and_those_that_were_deleted_are_marked() -> None:
    answers = [httpx.Response(200, json=[1, 2]), httpx.Response(200, json=[2])]
    # Both versions import the same one, which is asked for once.
    registered = answering(*answers, version(1, **importing("m")), version(1), version(2, **importing("m"))).versions(
        "o"
    )
    money = Reference(name="x.Money", imported=Schema(kind="AVRO", text="v1"))
    assert registered == [
        SubjectVersion("o", 1, 11, Schema(kind="AVRO", text="v1", references=(money,)), deleted=True),
        SubjectVersion("o", 2, 12, Schema(kind="AVRO", text="v2", references=(money,)), deleted=False),
    ]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([version(1), httpx.Response(404, json={"error_code": 40402})], "schema 7 .* imports x.Money from version 1"),
        ([version(1), *[version(1, **importing("m"))] * 2], "version 1 of subject m .* imports itself, by way"),
        ([version(1), *[version(1, **importing(f"m{n}")) for n in range(40)]], "imported more than 30 deep"),
        ([version(1), httpx.Response(200, json={"id": "x", "schema": "s"})], "`id` of its answer: Input should be a"),
    ],
)  # fmt: skip
def test_an_import_that_cannot_be_read_is_an_error(answers: list[httpx.Response], message: str) -> None:
    first = httpx.Response(200, json={"schema": "s", **importing("m")})
    with pytest.raises(PermanentError, match=message):
        answering(first, *answers[1:]).schema(7)

"""No error about a YAML file repeats what may be a secret, wherever in the file it stands and whatever is wrong."""

import json
import traceback
from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.config.last_known import last_known
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.secrets import GIVEN, key_name, masked, plain_url, shown
from tests.support.places import Place, mappings, places, with_value

pytestmark = pytest.mark.unit
MARK = "Geheim77"
SMALLEST: dict[str, Any] = {"archive": "orders", "source": {"topics": ["t"]}, "store": {"url": "s3://bucket/lake"}}
# What people write by mistake, or where something else belongs.
URL = f"https://{MARK}:{MARK}@host/path?token={MARK}#{MARK}"
CONTAINERS = [[MARK], [[MARK]], {MARK.lower(): MARK}, {"a": [MARK]}, {"a": {"b": MARK}}, [{"a": MARK}]]
# A name may stand for the whole mapping.
NAMES = {"store.layout", "transform.mapper", "transform.function"}
# A text of its own is what these are for.
PLAIN = [p for p in places() if not p.kinds & {"mapping", "section", "sections"} or p.key in NAMES]
FULL = f"""\
archive: orders
source:
  topics: [orders]
  kafka:
    bootstrap.servers: b:1
    sasl.password: {MARK}
    ssl.key.pem: |
      -----BEGIN
      {MARK}
  registry: {{url: "https://r", basic.auth.user.info: "user:{MARK}"}}
store:
  url: s3://bucket/lake
  aws: {{aws_access_key_id: key, aws_secret_access_key: '{MARK}'}}
  options: {{separator: {MARK}}}
spark:
  conf: {{spark.hadoop.fs.s3a.secret.key: {MARK}, "spark.a": "{MARK}"}}
"""


def complaint(text: str) -> str:
    """All that a log shows of the error; empty when there is none."""
    try:
        parse_archive(text, "orders.yaml")
    except ConfigError as error:
        return "".join(traceback.format_exception(error)).replace(text, "")
    return ""


@pytest.mark.parametrize("place", places(), ids=lambda place: place.key)
def test_nothing_given_in_a_wrong_shape_is_repeated(place: Place) -> None:
    for wrong in CONTAINERS[1:] if "list" in place.kinds else CONTAINERS:
        text = json.dumps(with_value(SMALLEST, place.path, wrong))
        assert MARK not in complaint(text), text


@pytest.mark.parametrize("place", [p for p in places() if p not in PLAIN], ids=lambda place: place.key)
@pytest.mark.parametrize("wrong", [MARK + " ", f"a:{MARK}", f"{MARK}@host", URL, f"s3://{MARK}/x y"])
def test_a_text_where_no_text_belongs_is_not_repeated(place: Place, wrong: str) -> None:
    text = json.dumps(with_value(SMALLEST, place.path, wrong))
    message = complaint(text)
    assert "orders.yaml: `" in message
    assert MARK not in message


@pytest.mark.parametrize("key", ["store.url", "alerts.on_failure", "spark.connection", "spark.conf"])
def test_an_address_with_credentials_is_refused_where_an_address_or_a_connection_belongs(key: str) -> None:
    wrong = [URL] if key == "alerts.on_failure" else URL
    message = complaint(json.dumps(with_value(SMALLEST, tuple(key.split(".")), wrong)))
    assert f"orders.yaml: `{key}" in message
    assert MARK not in message


@pytest.mark.parametrize(
    "url",
    [
        f"s3://key:{MARK}@bucket/p",
        # Secret keys have slashes.
        f"s3://key:Ge/{MARK}@bucket/p",
        f"s3://bucket/p?token={MARK}",
        f"s3://bucket/p#{MARK}",
        f"https://key:{MARK}@bucket",
        f"key:{MARK}@bucket",
        f"key:{MARK}",
    ],
)
def test_a_store_url_with_credentials_is_refused_without_repeating_them(url: str) -> None:
    message = complaint(json.dumps(with_value(SMALLEST, ("store", "url"), url)))
    assert "`store.url`: expected s3://bucket/prefix" in message
    assert MARK not in message


@pytest.mark.parametrize(
    ("key", "name"), [("store.aws", "endpoint_url"), ("source.registry", "url")], ids=["store", "registry"]
)
@pytest.mark.parametrize("url", [f"https://u:{MARK}@h", f"u:{MARK}@h", f"https://h/?t={MARK}", f"https://h#{MARK}"])
def test_an_address_among_properties_is_refused_when_it_has_more_than_an_address(key: str, name: str, url: str) -> None:
    text = json.dumps(with_value(SMALLEST, tuple(key.split(".")), {name: url}))
    message = complaint(text)
    assert f"`{key}`: expected `{name}` like http" in message
    assert message.endswith("without user, password, query and fragment\n")
    assert MARK not in message


# The formats check the types of `store.options`.
@pytest.mark.parametrize("key", sorted(set(mappings()) - {"store.options"}))
@pytest.mark.parametrize(("value", "kind"), [([MARK], "a list"), ({"a": MARK}, "a mapping"), (None, "nothing")])
def test_a_property_of_a_wrong_type_is_named_with_the_type_that_is_expected(key: str, value: Any, kind: str) -> None:
    message = complaint(json.dumps(with_value(SMALLEST, tuple(key.split(".")), {"some.password": value})))
    assert message.splitlines()[-1].endswith(
        f"orders.yaml: `{key}.some.password`: expected text, a number, true or false; found {kind}"
    )


@pytest.mark.parametrize(
    "options", [f"-Da.password={MARK}", f'-XX:+UseSerialGC "-Djavax.net.ssl.trustStorePassword={MARK} x"']
)
@pytest.mark.parametrize("name", ["spark.driver.extraJavaOptions", "spark.executor.defaultJavaOptions"])
def test_a_secret_among_the_options_of_java_is_refused(name: str, options: str) -> None:
    message = complaint(json.dumps(with_value(SMALLEST, ("spark", "conf"), {name: options})))
    assert f"`spark.conf`: expected no secret in `{name}`" in message
    assert "give -XX:VMOptionsFile=<file>" in message
    assert MARK not in message


@pytest.mark.parametrize("wrong", [f"{MARK}/x", MARK, "-a", "a" * 254, [MARK]])
def test_a_secret_of_kubernetes_is_given_by_its_name_not_by_what_is_in_it(wrong: Any) -> None:
    message = complaint(json.dumps(with_value(SMALLEST, ("spark", "kubernetes_secret"), wrong)))
    assert "`spark.kubernetes_secret`: expected the name of a Kubernetes Secret" in message
    assert MARK not in message


def test_other_options_of_java_are_taken() -> None:
    conf = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Da.b=c", "spark.app.password": "-Dpassword=x"}
    assert complaint(json.dumps(with_value(SMALLEST, ("spark", "conf"), conf))) == ""


@pytest.mark.parametrize("key", mappings())
def test_a_missing_space_behind_a_colon_makes_a_key_of_a_secret_and_is_said_without_it(key: str) -> None:
    text = json.dumps(with_value(SMALLEST, tuple(key.split(".")), {f"some.password:{MARK}": "x"}))
    message = complaint(text)
    assert f"`{key}.some.password…`: expected the name of a property" in message
    assert "is a space missing" in message
    assert MARK not in message


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (f"*{MARK}", "found undefined alias"),
        (f"!{MARK} x", "could not determine a constructor for the tag"),
        (f"@{MARK}", "cannot start any token"),
        (f"`{MARK}`", "cannot start any token"),
        (f"&{MARK} 1, b: &{MARK} 2", "second occurrence"),
        (f"!!int {MARK}", "cannot be read"),
        (f"!!float {MARK}", "cannot be read"),
        (f"!!timestamp {MARK}", "cannot be read"),
        (f"!!bool {MARK}", "cannot be read"),
        (f"!!binary é{MARK}", "failed to convert base64 data into ascii"),
        (f'"\\q{MARK}"', "found unknown escape character"),
        (f"%{MARK}", "cannot start any token"),
    ],
)
def test_what_yaml_cannot_read_is_said_by_line_and_column_alone(value: str, problem: str) -> None:
    message = complaint(f"archive: orders\nsource: {{kafka: {{sasl.password: {value}}}}}\n")
    assert "orders.yaml: not YAML: " in message
    assert problem in message
    assert MARK not in message


def test_a_tree_that_is_too_deep_is_said_by_its_line_alone() -> None:
    message = complaint(f"archive: orders\nsource: {'[' * 5000}{MARK}\n")
    assert "orders.yaml: line 2: expected at most 100 levels" in message
    assert MARK not in message


@pytest.mark.parametrize("text", [f"just a:{MARK}", f"[{MARK}]", f"'{MARK}'", f"? [{MARK}]\n: 1", f"? {{a: {MARK}}}\n"])
def test_a_file_that_is_no_archive_is_not_repeated(text: str) -> None:
    message = complaint(text)
    assert "orders.yaml: " in message
    assert MARK not in message


def test_a_key_that_is_given_twice_is_named_without_its_value() -> None:
    message = complaint(f'archive: o\nsource: {{kafka: {{"p:{MARK}": 1, "p:{MARK}": 2}}}}\n')
    assert "line 2: key `p…` is given twice" in message
    assert MARK not in message


@given(st.data())
@example(None)
def test_a_damaged_file_is_never_repeated(data: st.DataObject | None) -> None:
    text = FULL if data is None else damaged(FULL, data)
    try:
        content = yaml.safe_load(text)
    except Exception:  # noqa: BLE001 - as may be
        content = None
    assume(not _in_a_key(content))
    assert MARK not in complaint(text)


def damaged(text: str, data: st.DataObject) -> str:
    """With up to three places cut out or written into, the secrets themselves left whole."""
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 12))
        inserted = data.draw(st.text(st.sampled_from("*&!%@`'\"{}[]:,#|>-? \n\tab0"), max_size=3))
        changed = text[:start] + inserted + text[start + cut :]
        text = changed if changed.count(MARK) == text.count(MARK) else text
    return text


def _in_a_key(content: Any) -> bool:
    """Return True if a secret is all of a key, or its beginning: nobody can tell such a key from others."""
    if isinstance(content, dict):
        return any(MARK in key_name(key) or _in_a_key(value) for key, value in content.items())
    return isinstance(content, list) and any(map(_in_a_key, content))


def test_the_example_of_all_secrets_is_an_archive() -> None:
    archive = parse_archive(FULL, "orders.yaml")
    keys = {key for key in mappings() if MARK in str(getattr(getattr(archive, key.split(".")[0]), key.split(".")[1]))}
    assert keys == set(mappings())
    assert MARK not in f"{archive!r} {archive}"


def test_the_properties_of_another_store_are_not_shown() -> None:
    store = f"{{url: 'az://c/p', connection: {{account_url: 'https://a', account_key: '{MARK}'}}}}"
    archive = parse_archive(f"archive: o\nsource: {{topics: [t]}}\nstore: {store}\n", "orders.yaml")
    assert archive.store.named_connection[1] == {"account_url": "https://a", "account_key": MARK}
    assert MARK not in f"{archive!r} {archive} {last_known(archive)}"


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://host:1/path", "https://host:1/path"),
        (f"https://u:{MARK}@host", "https://host"),
        (f"https://u:/{MARK}@host", "https://host"),
        (f"https://host/x?a={MARK}#{MARK}", "https://host/x"),
        (f"u:{MARK}@host", "host"),
        (f"https://u:?{MARK}@host", "https://…"),
        (f"https://host?a={MARK}@{MARK}", "https://…"),
        ("b-1:9092,b-2:9092", "b-1:9092,b-2:9092"),
    ],
)
def test_of_an_address_only_the_address_is_shown(url: str, plain: str) -> None:
    assert plain_url(url) == plain


def test_of_a_mapping_only_what_is_known_to_be_harmless_is_shown() -> None:
    assert shown("source.kafka.bootstrap.servers", "b:1") == "b:1"
    assert shown("spark.conf.spark.executor.memory", "2g") == "2g"
    for key in mappings():
        assert shown(f"{key}.some.property", MARK) == GIVEN
    # The same name elsewhere is another program's.
    assert shown("store.aws.bootstrap.servers", MARK) == GIVEN


def test_logs_mask_secrets_by_their_names_and_passwords_by_their_place_in_an_address() -> None:
    secrets = set(
        masked(
            {
                "sasl.password": "a",
                "fs.azure.account.key.x": "b",
                "basic.auth.user.info": "user:c",
                "sasl.oauthbearer.token.endpoint.url": "https://user:d@idp/token",
                "ssl.ca.location": "/etc/ca.pem",
                "socket.keepalive.enable": "true",
            }
        )
    )
    assert {"a", "b", "user:c", "c", "d"} <= secrets
    assert not {"/etc/ca.pem", "true"} & secrets


def test_the_archive_itself_does_not_repeat_them_either() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_archive(FULL, "x").choosing({"lost_offsets": ["x"]})
    assert "lost_offsets" in str(caught.value)
    assert isinstance(Archive.model_validate(yaml.safe_load(FULL)), Archive)

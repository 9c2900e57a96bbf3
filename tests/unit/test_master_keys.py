"""Master keys: what wraps a data key opens it, nothing else does, and a rotation loses none."""

import base64
import json
import logging
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kafka_archiver.config.encryption import Client
from kafka_archiver.context.keyring import keyring_of
from kafka_archiver.encryption import Keyring
from kafka_archiver.encryption.masters import LocalMaster
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.messages.errors import ConfigError, PermanentError, TransientError
from kafka_archiver.messages.yaml_faults import fault_lines
from kafka_archiver.model.data_keys import DataKey, DataKeyDocument, Wrapped
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.writer.result import WriteJob
from kafka_archiver.store.kms import KmsMaster
from kafka_archiver.store.options import S3Options
from kafka_archiver.store.retry import Backoff
from tests.support.extensions import Install
from tests.support.kms import ARN, Kms, a_kms

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SECRETS = st.binary(min_size=32, max_size=32)
FIRST, SECOND = b"1" * 32, b"2" * 32


def text(secret: bytes) -> str:
    return base64.b64encode(secret).decode()


@pytest.fixture
def kms() -> Iterator[Kms]:
    with a_kms() as service:
        yield service


def options(kms: Kms) -> dict[str, str]:
    return {
        "kms_endpoint_url": kms.url,
        "region_name": "eu-west-1",
        "aws_access_key_id": "AKID",
        "aws_secret_access_key": "s3cr3t",
    }


def of_kms(kms: Kms, key: str = "first") -> KmsMaster:
    return KmsMaster(key, S3Options.parse(options(kms)), Backoff(tries=2, sleep=lambda _: None))


@given(SECRETS, SECRETS)
def test_only_the_master_key_that_wrapped_a_data_key_opens_it(own: bytes, other: bytes) -> None:
    key, document = Keyring([LocalMaster(own)]).new("orders", NOW)
    assert Keyring([LocalMaster(other), LocalMaster(own)]).open(document) == key
    shown = document.to_json().decode()
    assert not any(form in shown for form in (text(key.secret), key.secret.hex(), text(own), own.hex()))
    if own != other:
        with pytest.raises(ConfigError, match="add the earlier secret to `previous_secrets`"):
            Keyring([LocalMaster(other)]).open(document)


@given(SECRETS, st.integers(0, 39), st.integers(0, 7))
def test_a_wrapped_key_that_was_changed_is_found(own: bytes, at: int, bit: int) -> None:
    keyring = Keyring([LocalMaster(own)])
    _, document = keyring.new("orders", NOW)
    damaged = bytearray(base64.b64decode(document.wrapped.text))
    damaged[at] ^= 1 << bit
    wrapped = Wrapped(master=document.wrapped.master, text=text(bytes(damaged)))
    with pytest.raises(PermanentError, match="is damaged: master key local:"):
        keyring.open(document.model_copy(update={"wrapped": wrapped}))


def test_two_keys_are_never_the_same() -> None:
    keyring = Keyring([LocalMaster(FIRST)])
    assert len({keyring.new("orders", NOW)[0] for _ in range(100)}) == 100


@given(st.lists(SECRETS, min_size=1, max_size=4, unique=True))
def test_each_rotation_keeps_the_data_key(secrets: list[bytes]) -> None:
    key, document = Keyring([LocalMaster(secrets[0])]).new("orders", NOW)
    for before, after in pairwise(secrets):
        changed = Keyring([LocalMaster(after), LocalMaster(before)]).rewrapped(document)
        assert changed
        document = DataKeyDocument.from_json(changed.to_json(), "x")
    last = Keyring([LocalMaster(secrets[-1])])
    assert last.open(document) == key
    assert last.rewrapped(document) is None


class TestKms:
    def test_it_wraps_and_opens_with_the_archive_and_the_key_as_context(self, kms: Kms) -> None:
        keyring = Keyring([of_kms(kms)])
        key, document = keyring.new("orders", NOW)
        assert document.wrapped.master == f"kms:{ARN}first"
        assert keyring.open(document) == key
        context = {"archive": "orders", "data-key": key.id}
        assert [(operation, request["EncryptionContext"]) for operation, request in kms.asked] == [
            ("Encrypt", context),
            ("Decrypt", context),
        ]
        with pytest.raises(PermanentError, match=r"KMS did not decrypt .* InvalidCiphertextException"):
            keyring.open(document.model_copy(update={"archive": "another"}))

    def test_another_key_of_kms_opens_what_the_first_has_wrapped_and_takes_over(self, kms: Kms) -> None:
        key, document = Keyring([of_kms(kms)]).new("orders", NOW)
        changed = Keyring([of_kms(kms, "second")]).rewrapped(document)
        assert changed
        kms.keys.remove("first")
        assert Keyring([of_kms(kms, "second")]).open(changed) == key

    def test_from_a_local_key_to_kms_and_back(self, kms: Kms) -> None:
        local = {"secret": text(FIRST)}
        by = {"kms_key_id": "first", "previous_secrets": text(FIRST)}
        keyrings = [keyring_of(Endpoints({}, options(kms), master_keys=keys)) for keys in (local, by, local)]
        first, second, third = (keyring for keyring in keyrings if keyring)
        key, document = first.new("orders", NOW)
        rewrapped = second.rewrapped(document)
        assert rewrapped
        assert rewrapped.wrapped.master.startswith("kms:")
        back = third.rewrapped(rewrapped)
        assert back
        assert third.open(back) == key

    def test_what_passes_is_tried_again_and_what_does_not_is_said(self, kms: Kms) -> None:
        kms.failures = ["KMSInternalException"]
        Keyring([of_kms(kms)]).new("orders", NOW)
        kms.failures = ["ThrottlingException"] * 2
        with pytest.raises(TransientError, match="KMS did not encrypt with key first: ThrottlingException"):
            Keyring([of_kms(kms)]).new("orders", NOW)
        with pytest.raises(PermanentError, match=r"NotFoundException. Expected an enabled symmetric key in store\."):
            Keyring([of_kms(kms, "none")]).new("orders", NOW)

    def test_without_a_region_it_says_so(self) -> None:
        with pytest.raises(ConfigError, match="KMS cannot be used with the store's connection"):
            Keyring([KmsMaster("k", S3Options())]).new("orders", NOW)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"secret": "c2hvcnQ="}, "master key 1 of 1: expected 32 bytes in base64"),
        ({"secret": "?"}, "master key 1 of 1: expected 32 bytes in base64"),
        ({"secret": text(FIRST), "previous_secrets": "c2hvcnQ="}, "master key 2 of 2: expected 32 bytes"),
        ({"secret": text(FIRST), "kms_key_id": "k"}, "expected secret or kms_key_id, and only one of them"),
        ({"previous_secrets": text(FIRST)}, "expected secret or kms_key_id, and only one of them"),
        ({"key": text(FIRST)}, "unknown key; expected secret, previous_secrets, kms_key_id"),
    ],
)
def test_wrong_keys_are_an_error_that_shows_none(keys: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        keyring_of(Endpoints({}, {}, master_keys=keys))
    assert not any(value in str(caught.value) for name, value in keys.items() if name != "kms_key_id" and value != "?")


def test_another_master_key_is_a_class_and_a_line(install: Install) -> None:
    install("master_keys", letter="tests.support.extensions.master_key:LetterMaster")
    keys = {"letter": "1", "previous_secrets": text(SECOND)}
    keyring = keyring_of(Endpoints({}, {"region_name": "eu-west-1"}, master_keys=keys))
    assert keyring
    for secret in (FIRST, SECOND):
        key, document = Keyring([LocalMaster(secret)]).new("orders", NOW)
        assert keyring.open(document) == key
    with pytest.raises(ConfigError, match="letter: expected one letter"):
        keyring_of(Endpoints({}, {}, master_keys={"letter": "12"}))


def test_the_yaml_has_a_key_for_each_master_key_of_a_service(install: Install) -> None:
    install("master_keys", letter="tests.support.extensions.master_key:LetterMaster")
    client = Client.model_validate({"letter": "1"})
    assert client.remote == {"letter": "1"}
    assert Client.model_validate(client.model_dump()) == client
    with pytest.raises(ValidationError, match="`connection` or `kms_key_id` or `letter`, and only one"):
        Client.model_validate({"letter": "1", "kms_key_id": "k"})
    for key in ("secret", "digit"):
        with pytest.raises(ValidationError) as caught:
            Client.model_validate({key: "1"})
        assert list(fault_lines(caught.value, "`{}` is none".format)) == [f"`{key}` is none"]


def test_no_text_has_a_key(caplog: pytest.LogCaptureFixture) -> None:
    key = DataKey(FIRST)
    job = WriteJob(archive="a", settings=Settings(encryption="client"), data_key=key.id, data_keys={key.id: key})
    endpoints = Endpoints({}, {}, master_keys={"secret": text(SECOND)})
    keyring = keyring_of(endpoints)
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("x").info("%s %r %s %s", job, key, endpoints, keyring)
    shown = f"{caplog.text} {job} {key} {[key]} {job.sealer('k')} {keyring}"
    for secret in (FIRST, SECOND):
        for form in (repr(secret)[2:-1], text(secret), secret.hex()):
            assert form not in shown


def test_executors_get_the_keys_with_the_job() -> None:
    key = DataKey(FIRST)
    job = WriteJob(archive="a", settings=Settings(encryption="client"), data_key=key.id, data_keys={key.id: key})
    job_there = pickle.loads(pickle.dumps(job))
    sealer, sealer_there = job.sealer("k"), job_there.sealer("k")
    assert [*sealer.update([b"x"]), *sealer.finish()] == [*sealer_there.update([b"x"]), *sealer_there.finish()]


def test_endpoints_without_keys_are_those_of_before() -> None:
    assert json.loads(Endpoints({}, {}).to_json()) == {"kafka": {}, "store": {}}
    assert Endpoints.from_json('{"kafka": {}, "store": {}}') == Endpoints({}, {})
    whole = Endpoints({"a": "b"}, {"c": "d"}, {"e": "f"}, {"secret": "s"})
    assert Endpoints.from_json(whole.to_json()) == whole
    assert "keys" not in repr(whole)

"""The configuration that is kept of an archive for the time when its YAML file is wrong or gone."""

import json

import pytest

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.config.last_known import NOT_KEPT, last_known, recalled, receivers_of

pytestmark = pytest.mark.unit
SECRET = "hunter2-hunter2"


def archive(more: str = "", source: str = "topics: [orders]", store: str = "url: s3://bucket/lake") -> Archive:
    text = f"archive: orders\nsource: {{{source}}}\nstore: {{{store}}}\n{more}"
    return parse_archive(text, "/archives/orders.yaml", {"PASSWORD": SECRET})


def kept(original: Archive) -> Archive:
    back = recalled(json.loads(json.dumps(last_known(original))))
    assert back is not None
    return back


@pytest.mark.parametrize(
    "encryption",
    ["none", "sse-s3", "sse-kms", "{sse-kms: {key_id: k}}", "{sse-c: {connection: c}}", "{client: {connection: c}}"],
)
def test_where_the_ledger_is_and_how_it_is_read_is_kept(encryption: str) -> None:
    original = archive(store=f"url: s3://bucket/lake, aws: elsewhere, encryption: {encryption}")
    back = kept(original)
    assert (back.archive, back.file) == ("orders", "/archives/orders.yaml")
    assert (back.store.url, back.store.aws, back.store.encryption) == (
        "s3://bucket/lake",
        "elsewhere",
        original.store.encryption,
    )


def test_limits_schedules_and_receivers_are_kept() -> None:
    original = archive(
        "schedule: '5 * * * *'\ntimezone: Europe/Berlin\nhealth: {max_age: 90m, max_audit_age: null}\n"
        "audit: {schedule: null}\nalerts: {on_failure: [ops, {connection: mail}], on_audit: [], max_age: 2h}\n",
        source="pattern: 'orders.*', group: g, kafka: other",
    )
    back = kept(original)
    for name in ("schedule", "timezone", "health", "alerts", "audit_schedule", "group"):
        assert getattr(back, name) == getattr(original, name), name
    assert (back.source.pattern, back.source.kafka) == ("orders.*", "other")


def test_no_secret_is_kept_and_no_other_cluster_is_asked_in_its_place() -> None:
    original = archive(
        f"alerts: {{on_failure: [ops, {{notifier: a.B, options: {{token: {SECRET}}}}}]}}\n",
        source="topics: [orders], kafka: {bootstrap.servers: 'b:9092', sasl.password: '${PASSWORD}'}",
        store="url: s3://bucket/lake, aws: {endpoint_url: 'http://s3:1', aws_secret_access_key: '${PASSWORD}'}",
    )
    assert SECRET not in json.dumps(last_known(original))
    back = kept(original)
    assert (back.source.kafka, back.store.aws, back.alerts.on_failure) == (NOT_KEPT, NOT_KEPT, ("ops",))


def test_properties_without_secrets_are_kept() -> None:
    original = archive(
        source="topics: [orders], kafka: {bootstrap.servers: 'b:9092'}",
        store="url: s3://bucket/lake, aws: {endpoint_url: 'http://s3:1', region_name: r}",
    )
    back = kept(original)
    assert (back.source.kafka, back.store.aws) == (original.source.kafka, original.store.aws)


@pytest.mark.parametrize("document", [None, [], {}, {"archive": "orders"}, {"archive": 1, "file": "f", "alerts": 3}])
def test_what_is_not_of_this_release_is_nothing(document: object) -> None:
    assert recalled(document) is None
    assert receivers_of(document).all == ()


def test_receivers_are_known_even_if_the_rest_is_of_another_release() -> None:
    document = {**last_known(archive("alerts: {on_failure: [ops]}\n")), "sink": 1}
    assert (recalled(document), receivers_of(document).on_failure) == (None, ("ops",))

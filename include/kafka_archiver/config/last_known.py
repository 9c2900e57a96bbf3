"""The settings that stay of an archive while its YAML file is wrong or gone: where its state is, and whom to tell.
Pure.

It has no secrets: a mapping with properties that may not be shown is left out, and a connection of a telling name takes
its place. It is not what a run needs: nothing is archived by it.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from kafka_archiver.config.alerts import Alerts
from kafka_archiver.config.archive import Archive
from kafka_archiver.messages.secrets import SHOWN

# In the place of properties that are not kept.
NOT_KEPT = "not_kept_because_its_properties_may_be_secret"
_PLAIN = ("archive", "description", "schedule", "timezone", "health", "audit")


def last_known(archive: Archive) -> dict[str, Any]:
    """Return the part of an archive's YAML that is kept, as JSON, with its file."""
    declared = archive.model_dump(mode="json", by_alias=True, exclude_unset=True)
    source = {key: declared["source"][key] for key in ("topics", "pattern", "group") if key in declared["source"]}
    store = {key: declared["store"][key] for key in ("url", "bucket_owner") if key in declared["store"]}
    key, connection = archive.store.named_connection
    encryption = archive.store.encryption.model_dump(mode="json", by_alias=True)
    kept = {key: declared[key] for key in _PLAIN if key in declared}
    return {
        **kept,
        "source": {**source, **_connection("source", "kafka", archive.source.kafka)},
        "store": {**store, "encryption": encryption, **_connection("store", key.removeprefix("store."), connection)},
        "alerts": _without_options(declared.get("alerts", {})),
        "file": archive.file,
    }


def recalled(document: Any) -> Archive | None:
    """Return the archive of what was kept, for its ledger and its receivers; None if it is not of this release."""
    with suppress(ValidationError, TypeError, ValueError, KeyError, AttributeError):
        content = {key: value for key, value in document.items() if key != "file"}
        return Archive.model_validate(content).of_file(str(document["file"]))
    return None


def receivers_of(document: Any) -> Alerts:
    """Return whom the archive told, also if the rest of what was kept is not of this release."""
    with suppress(ValidationError, TypeError, KeyError, AttributeError):
        return Alerts.model_validate(document["alerts"])
    return Alerts()


def _connection(section: str, key: str, value: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(value, str):
        return {key: value}
    plain = all(f"{section}.{key}.{name}" in SHOWN for name in value)
    return {key: dict(value) if plain else NOT_KEPT}


def _without_options(alerts: Mapping[str, Any]) -> dict[str, Any]:
    """The receivers that a connection describes: the options of others may have secrets."""
    lists = {
        key: [receiver for receiver in value if isinstance(receiver, str) or not receiver.get("options")]
        for key, value in alerts.items()
        if isinstance(value, list)
    }
    # A limit without receivers would be refused.
    limits = {"max_age": "on_late_hour", "max_lag_records": "on_lag"}
    used_limits = {limit for limit, key in limits.items() if lists.get(key, lists.get("on_failure"))}
    return {**lists, **{key: value for key, value in alerts.items() if key in used_limits}}

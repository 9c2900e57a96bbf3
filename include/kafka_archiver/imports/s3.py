"""How a tool reaches its bucket: region, endpoint, credentials."""

from collections.abc import Mapping
from typing import Any

from kafka_archiver.imports.base import Keys, without_empty
from kafka_archiver.properties import is_plain_address

_CONNECTION = "aws_default"


def access(keys: Keys, names: Mapping[str, str], tool: str) -> dict[str, Any]:
    """`store.aws`: a mapping of region and endpoint; if there are credentials, a connection, which takes all of it.

    :param names: the tool's keys of `region`, `endpoint`, `path_style`, `access_key`, `secret_key`, `provider` and
        `provider_options` (a prefix); a tool may lack some.
    """
    secrets = [names[part] for part in ("access_key", "secret_key") if keys.get(names.get(part, ""))]
    endpoint = keys.get(names.get("endpoint", ""))
    path_style = keys.get(names.get("path_style", "")).lower()
    options = without_empty(
        {
            "region_name": keys.get(names.get("region", "")),
            "endpoint_url": endpoint,
            "addressing_style": {"true": "path", "false": "virtual"}.get(path_style),
        }
    )
    by_hand = bool(secrets) or (endpoint != "" and not is_plain_address(endpoint))
    for part in ("region", "endpoint", "path_style"):
        key = names.get(part, "")
        if by_hand:
            keys.by_hand(key, f"into the extra of the Airflow connection {_CONNECTION} (type aws)")
        else:
            keys.kept(key, "store.aws")
    for part, target in (("access_key", "login"), ("secret_key", "password")):
        key = names.get(part, "")
        if keys.get(key):
            keys.by_hand(key, f"into the {target} of the Airflow connection {_CONNECTION} (type aws)")
        else:
            keys.kept(key, f"empty: the credentials of the machine, or of the connection {_CONNECTION}")
    provider = names.get("provider", "")
    if provider in keys:
        keys.by_hand(
            provider, f"no Java class here: role, profile or keys are in the connection {_CONNECTION} of {tool}'s user"
        )
    for key in keys.starting(names.get("provider_options") or "\0"):
        if key != provider:
            keys.by_hand(key, f"into the Airflow connection {_CONNECTION} (role_arn, external_id, …)")
    return {"aws": _CONNECTION} if by_hand else ({"aws": options} if options else {})


def requests(keys: Keys) -> dict[str, Any]:
    """Encryption, ACL and tags, as Confluent names them."""
    made: dict[str, Any] = {}
    algorithm, key_id = keys.get("s3.ssea.name"), keys.get("s3.sse.kms.key.id")
    if keys.get("s3.sse.customer.key"):
        made["encryption"] = {"sse-c": {"connection": "sse_c_key"}}
        keys.by_hand("s3.sse.customer.key", "into the password of an Airflow connection, here called sse_c_key")
    elif algorithm == "AES256":
        made["encryption"] = "sse-s3"
    elif algorithm == "aws:kms":
        made["encryption"] = {"sse-kms": {"key_id": key_id}} if key_id else "sse-kms"
    for key in ("s3.ssea.name", "s3.sse.kms.key.id", "s3.sse.customer.key"):
        keys.kept_if_new(key, "store.encryption")
    if acl := keys.get("s3.acl.canned"):
        made["acl"] = acl
    keys.kept("s3.acl.canned", "store.acl")
    keys.differs(
        "s3.object.tagging", "the manifest has offsets and rows of every object; `store.tags` are tags of your own"
    )
    return made

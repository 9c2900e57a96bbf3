"""The access of a tool to its bucket: region, endpoint, credentials."""

from collections.abc import Mapping
from typing import Any, get_args

from kafka_archiver.config.properties import is_plain_address
from kafka_archiver.config.store import Acl
from kafka_archiver.imports.base import Keys, without_empty

_CONNECTION = "aws_default"
_MORE = "see «Credentials of the store» in docs/install/connections.md"
_EXTRA = f"in the extra of the Airflow connection {_CONNECTION} (type aws): "
_OF_MACHINE = "nothing: boto3 finds the same credentials where the workers run"
# By a part of the class's name; the first that fits.
_PROVIDERS = {
    "WebIdentity": f'{_EXTRA}role_arn, "assume_role_method": "assume_role_with_web_identity", '
    '"assume_role_with_web_identity_federation": "file" and the token\'s file; on EKS an empty connection does it',
    "AssumeRole": f'{_EXTRA}role_arn, and "assume_role_kwargs": {{"ExternalId": …}} if the role wants one',
    "InstanceProfile": _OF_MACHINE,
    "Container": _OF_MACHINE,
    "Default": _OF_MACHINE,
    "Environment": _OF_MACHINE,
    "Profile": f"{_EXTRA}profile_name, a profile of ~/.aws on the workers",
}
_OWN_PROVIDER = (
    f"no Java class runs here. Give what it gives in the Airflow connection {_CONNECTION} (type aws): keys as login "
    "and password, or in the extra role_arn, profile_name, or a web identity; empty, it means the role of the machine"
)


def _advice(provider: str) -> str:
    """Return the advice for a class that gives credentials."""
    known = provider.startswith(("com.amazonaws.", "software.amazon.", "io.confluent."))
    fitting = (text for part, text in _PROVIDERS.items() if known and part in provider)
    return next(fitting, _OWN_PROVIDER) if provider else _OF_MACHINE


def access(keys: Keys, names: Mapping[str, str]) -> dict[str, Any]:
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
    provider = names.get("provider", "")
    advice = _advice(keys.get(provider))
    by_hand = bool(secrets) or advice != _OF_MACHINE or (endpoint != "" and not is_plain_address(endpoint))
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
    if advice == _OF_MACHINE:
        keys.kept(provider, advice)
    else:
        keys.by_hand(provider, f"{advice}; {_MORE}")
    for key in keys.starting(names.get("provider_options") or "\0"):
        if key != provider:
            keys.by_hand(key, f"into the Airflow connection {_CONNECTION} (role_arn, assume_role_kwargs, …)")
    return {"aws": _CONNECTION} if by_hand else ({"aws": options} if options else {})


def requests(keys: Keys) -> dict[str, Any]:
    """Encryption, ACL and tags, as Confluent names them."""
    options: dict[str, Any] = {}
    algorithm, key_id = keys.get("s3.ssea.name"), keys.get("s3.sse.kms.key.id")
    if keys.get("s3.sse.customer.key"):
        options["encryption"] = {"sse-c": {"connection": "sse_c_key"}}
        keys.by_hand("s3.sse.customer.key", "into the password of an Airflow connection, here called sse_c_key")
    elif algorithm == "AES256":
        options["encryption"] = "sse-s3"
    elif algorithm == "aws:kms":
        options["encryption"] = {"sse-kms": {"key_id": key_id}} if key_id else "sse-kms"
    elif algorithm:
        keys.lacks("s3.ssea.name", "expected AES256 or aws:kms; objects are stored without encryption by S3's request")
    for key in ("s3.ssea.name", "s3.sse.kms.key.id", "s3.sse.customer.key"):
        keys.kept(key, "store.encryption")
    acl = keys.get("s3.acl.canned")
    if acl in get_args(Acl):
        options["acl"] = acl
    elif acl:
        keys.lacks("s3.acl.canned", f"objects get the bucket's default; store.acl has {', '.join(get_args(Acl))}")
    keys.kept("s3.acl.canned", "store.acl")
    keys.differs(
        "s3.object.tagging", "the manifest has offsets and rows of every object; `store.tags` are tags of your own"
    )
    return options

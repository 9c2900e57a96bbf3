"""Properties as texts; logs mask their secrets."""

import json
from typing import Any

from airflow.sdk.log import mask_secret

from kafka_archiver.messages.secrets import masked


def mask_secrets(properties: dict[str, str]) -> dict[str, str]:
    """Make logs mask the secrets of these properties, and return the properties."""
    for secret in masked(properties):
        mask_secret(secret)
        mask_secret(json.dumps(secret)[1:-1])
    return properties


def text(value: Any) -> str:
    """Return a value of YAML or JSON as text for a client's property."""
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Properties as texts; logs mask their secrets."""

import json
from typing import Any

from airflow.sdk.log import mask_secret

from kafka_archiver.messages.secrets import masked


def hidden(found: dict[str, str]) -> dict[str, str]:
    """The same properties. From now on logs mask their secrets."""
    for secret in masked(found):
        mask_secret(secret)
        mask_secret(json.dumps(secret)[1:-1])
    return found


def text(value: Any) -> str:
    """A value of YAML or JSON as text for a client's property."""
    return str(value).lower() if isinstance(value, bool) else str(value)

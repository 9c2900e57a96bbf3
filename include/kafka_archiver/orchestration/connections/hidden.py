"""Properties as texts, and what is secret in them kept out of logs."""

import json
from typing import Any

from airflow.sdk.log import mask_secret

from kafka_archiver.secrets import masked


def hidden(found: dict[str, str]) -> dict[str, str]:
    """The same properties. What is secret in them is kept out of logs from now on."""
    for secret in masked(found):
        mask_secret(secret)
        mask_secret(json.dumps(secret)[1:-1])
    return found


def text(value: Any) -> str:
    """A value of YAML or JSON as clients' properties have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)

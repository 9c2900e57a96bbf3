"""The token of machines that read health and metrics: not a person's, and good for nothing else."""

import hmac
import os

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from fastapi import Request

# The variable with the token, or the Airflow connection with the token as its password.
VARIABLE, CONNECTION = "ARCHIVER_METRICS_TOKEN", "archiver_metrics"
_PREFIX = "bearer "


def has_token(request: Request) -> bool:
    """Return whether the request has the token, as `Authorization: Bearer …`. Compared in constant time."""
    header = request.headers.get("authorization", "")
    token = _configured_token() if header.lower().startswith(_PREFIX) else None
    return token is not None and hmac.compare_digest(header[len(_PREFIX) :].strip().encode(), token.encode())


def _configured_token() -> str | None:
    """Return the token; None: there is none, and only users may look."""
    if token := os.environ.get(VARIABLE, "").strip():
        return token
    os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
    try:
        return str(Connection.get(CONNECTION).password or "").strip() or None
    except AirflowNotFoundException:
        return None

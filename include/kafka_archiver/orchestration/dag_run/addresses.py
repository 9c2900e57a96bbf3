"""Addresses of Airflow's UI and of the archiver's page in it."""

from urllib.parse import quote

from airflow.sdk.configuration import conf


def base_url() -> str:
    """Return the address of Airflow's API server; Airflow's own default if the configuration has none."""
    return str(conf.get("api", "base_url", fallback="") or "http://localhost:8080").rstrip("/")


def page_of(archive: str) -> str:
    """Return the address of an archive's page."""
    return f"{base_url()}/archiver/archives/{quote(archive)}"

"""The address of Airflow's REST API, and if it gives a token to everybody."""

from airflow.configuration import conf


def api_url() -> str:
    """Return the address of the API server; Airflow's own default if the configuration has none."""
    return str(conf.get("api", "base_url", fallback="") or "http://localhost:8080").rstrip("/")


def needs_no_login() -> bool:
    """Tell if everybody is an administrator: only Airflow's simple auth manager has this."""
    simple = conf.get("core", "auth_manager", fallback="").endswith(".SimpleAuthManager")
    return simple and conf.getboolean("core", "simple_auth_manager_all_admins", fallback=False)

"""Other sites cannot act: a browser sends Airflow's cookie with their requests, but not what is checked here."""

from urllib.parse import urlsplit

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.tokens import get_signing_key
from airflow.configuration import conf
from fastapi import HTTPException, Request
from itsdangerous import BadSignature, URLSafeTimedSerializer

# Seconds for which a page's forms are good.
GOOD = 12 * 3600
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


def csrf_token(user: BaseUser) -> str:
    """Return the token that the forms of this user carry."""
    return str(_serializer().dumps(user.get_id()))


def require_own_page(request: Request, user: BaseUser, token: str) -> None:
    """Check that a page of ours, made for this user, sent the request.

    :raises HTTPException: 403: another site sent it, or the page is too old.
    """
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin") or (origin is None and site is None):
        raise HTTPException(403, "Another site sent this request; open the page and try again")
    if origin is not None and origin not in (allowed := _origins(request)):
        raise HTTPException(
            403,
            f"This request comes from {origin}, and Airflow's pages are at {allowed[0]}. If this is your Airflow, "
            "correct `base_url` in the section [api] of its configuration",
        )
    try:
        mine = _serializer().loads(token, max_age=GOOD) == user.get_id()
    except BadSignature:
        mine = False
    if not mine:
        raise HTTPException(403, "This form is too old, or somebody else's; open the page again")


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(str(get_signing_key("api", "secret_key")), salt="archiver-page")


def _origins(request: Request) -> list[str]:
    """Return the origins of Airflow's own pages; never the request's Host where the configuration has an address."""
    base = urlsplit(conf.get("api", "base_url", fallback="") or str(request.base_url))
    port = f":{base.port}" if base.port else ""
    local = [f"{base.scheme}://{host}{port}" for host in _LOCAL] if base.hostname in _LOCAL else []
    return [f"{base.scheme}://{base.netloc}", *local]

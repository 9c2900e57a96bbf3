"""Who may see and do what: Airflow's own auth manager decides.

Who may see an archive's DAG may see the archive; who may trigger the DAG may act, and look at records. Other sites
cannot act: a browser sends Airflow's cookie with their requests, but not what `require_own_page` checks.
"""

import hmac
import logging
import os
from collections import defaultdict
from collections.abc import Collection
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity, DagDetails
from airflow.api_fastapi.auth.tokens import get_signing_key
from airflow.api_fastapi.core_api.security import get_user
from airflow.configuration import conf
from airflow.models import DagModel
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.utils.session import create_session
from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from itsdangerous import BadSignature, URLSafeTimedSerializer
from sqlalchemy import select

from kafka_archiver.config import Archive
from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.dag_run.params import checked_run
from kafka_archiver.orchestration.page.archives import ArchiveSnapshots

# Seconds for which a page's forms are good.
GOOD = 12 * 3600
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
# The variable with the token, or the Airflow connection with the token as its password.
VARIABLE, CONNECTION = "ARCHIVER_METRICS_TOKEN", "archiver_metrics"
_PREFIX = "bearer "
log = logging.getLogger(__name__)
# Into which archives the page may look: `plain`: those that are not encrypted before they are sent; `all`; `none`.
RECORDS_SETTING = "ARCHIVER_PAGE_RECORDS"
_bearer = HTTPBearer(auto_error=False)


def has_token(request: Request) -> bool:
    """Return True if the request has the token of machines that read health and metrics, and that is good for no more.

    It is sent as `Authorization: Bearer …`, and compared in constant time.
    """
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


async def user_or_none(
    request: Request, bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> BaseUser | None:
    """Return Airflow's user of this request, by its cookie or token; None: a stranger."""
    if bearer and bearer.credentials.count(".") != 2:
        # Not a token of Airflow's; Airflow would log an error at each scrape.
        return None
    try:
        return await get_user(request, None, bearer)
    except HTTPException:
        return None


def login(user: Annotated[BaseUser | None, Depends(user_or_none)]) -> BaseUser:
    """Return Airflow's user of this request.

    :raises HTTPException: 401 for a stranger.
    """
    if user is None:
        raise HTTPException(401, "Log in to Airflow first")
    return user


MaybeUser: TypeAlias = Annotated[BaseUser | None, Depends(user_or_none)]
User: TypeAlias = Annotated[BaseUser, Depends(login)]


def visitor(request: Request, user: MaybeUser) -> BaseUser:
    """Return the user; a stranger is sent to Airflow's login.

    :raises HTTPException: 303 to the login.
    """
    if user is None:
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        raise HTTPException(303, headers={"Location": get_auth_manager().get_url_login(next_url=here)})
    return user


def _snapshots_of(request: Request) -> ArchiveSnapshots:
    archive_snapshots: ArchiveSnapshots = request.app.state.archive_snapshots
    return archive_snapshots


Visitor: TypeAlias = Annotated[BaseUser, Depends(visitor)]
PageSnapshots: TypeAlias = Annotated[ArchiveSnapshots, Depends(_snapshots_of)]


def visible(user: BaseUser, names: Collection[str]) -> set[str]:
    """Return the archives whose DAG this user may see."""
    ids = {dag_id(name): name for name in names}
    manager, visible_ids = get_auth_manager(), set()
    for team, team_ids in _by_team(ids).items():
        visible_ids |= manager.filter_authorized_dag_ids(dag_ids=team_ids, user=user, method="GET", team_name=team)
    return {ids[visible_id] for visible_id in visible_ids}


def may_act(user: BaseUser, dag: str) -> bool:
    """Return True if this user may trigger runs of a DAG."""
    return _may(user, dag, "POST", DagAccessEntity.RUN)


def may_edit(user: BaseUser, dag: str) -> bool:
    """Return True if this user may pause and unpause a DAG."""
    return _may(user, dag, "PUT", None)


def may_declare(user: BaseUser) -> bool:
    """Return True if this user may change and start any DAG: then, that of an archive that is not there yet, too."""
    manager = get_auth_manager()
    runs = manager.is_authorized_dag(method="POST", access_entity=DagAccessEntity.RUN, user=user)
    return bool(runs and manager.is_authorized_dag(method="PUT", user=user))


def sees_errors(user: BaseUser) -> bool:
    """Return True if this user may see the errors of files: of Airflow's own DAG files, and of the archives'."""
    return bool(get_auth_manager().is_authorized_view(access_view=AccessView.IMPORT_ERRORS, user=user))


def _may(user: BaseUser, dag: str, method: ResourceMethod, entity: DagAccessEntity | None) -> bool:
    for team in _by_team([dag]):
        details = DagDetails(id=dag, team_name=team)
        return bool(
            get_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=details, user=user)
        )
    return False


def _by_team(ids: Collection[str]) -> dict[str | None, set[str]]:
    """Group DAGs by team. With several teams, a DAG that Airflow does not have yet is of nobody: it is left out."""
    if not conf.getboolean("core", "multi_team", fallback=False):
        return {None: set(ids)}
    with create_session() as session:
        known = set(session.scalars(select(DagModel.dag_id).where(DagModel.dag_id.in_(ids))))
        teams = DagModel.get_dag_id_to_team_name_mapping(list(known), session=session)
    by_team: dict[str | None, set[str]] = defaultdict(set)
    for known_id in known:
        by_team[teams.get(known_id)].add(known_id)
    return by_team


def shows_records(archive: Archive) -> bool:
    """Return True if the page may show records of this archive."""
    choice = os.environ.get(RECORDS_SETTING, "plain")
    if choice not in ("plain", "all", "none"):
        log.warning("%s: expected plain, all or none, found %r: no records are shown", RECORDS_SETTING, choice)
    return choice == "all" or (choice == "plain" and archive.store.encryption.client is None)


def require_visible(archive_snapshots: ArchiveSnapshots, user: BaseUser, name: str) -> Archive:
    """Return the archive.

    :raises HTTPException: 404: there is none, or this user may not see it, which looks the same.
    """
    archive = archive_snapshots.archives().valid.get(name)
    if archive is None or not visible(user, [name]):
        raise HTTPException(404, "There is no such archive, or you may not see it")
    return archive


def _shown_archive(name: str, who: Visitor, archive_snapshots: PageSnapshots) -> Archive:
    return require_visible(archive_snapshots, who, name)


# The archive that an address names, if this user may see it.
ShownArchive: TypeAlias = Annotated[Archive, Depends(_shown_archive)]


def _run_name(run: str) -> str:
    try:
        return checked_run(run, "run")
    except ConfigError:
        raise HTTPException(404, "There is no such run; expected one like 20261121T050000Z") from None


# The run that an address names, as the ledger has it.
RunName: TypeAlias = Annotated[str, Depends(_run_name)]


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

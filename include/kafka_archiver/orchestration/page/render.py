"""Templates: server-rendered HTML, with the filters that spell values."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from airflow.configuration import conf
from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from kafka_archiver.messages.wording import count, plain_times, shortened, size, span
from kafka_archiver.model.reasons import split_reason
from kafka_archiver.state.coverage import DayCell, HourCell, State
from kafka_archiver.state.health.judge import STALE

HERE = Path(__file__).parent
NOTHING = "–"
# Each state has a sign too: colours alone say nothing to many people.
_SIGNS: dict[State, tuple[str, str]] = {
    "complete": ("✓", "complete"),
    "late": ("+", "complete, records came afterwards"),
    "letters": ("✉", "complete, with dead letters"),
    "open": ("·", "open"),
    "running": ("▸", "a run is at work"),
    "unfinished": ("‖", "a run has begun, is not finished, and no run is at work"),
    "incomplete": ("!", "incomplete"),
    "lost": ("✕", "records are lost"),
    "damaged": ("≠", "damaged, by the last audit"),
}
# Nothing is loaded from elsewhere, and only Airflow may frame the page.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a page of this template."""
    all_values = {
        "base": base_path(request),
        "airflow": airflow_path(),
        "now": datetime.now(UTC),
        "stale": STALE,
        "every": None,
        **values,
    }
    return HTMLResponse(environment().get_template(template).render(all_values), status)


def redirect(request: Request, path: str) -> Response:
    """Lead to another page of ours."""
    return RedirectResponse(f"{base_path(request)}{path}", 303)


def base_path(request: Request) -> str:
    """Return the path below which the page is, without a slash at the end."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def airflow_path() -> str:
    """Return the path of Airflow's UI, without a slash at the end: empty unless a proxy serves it below a path."""
    return urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")


@cache
def environment() -> Environment:
    """Return the templates, with every value escaped."""
    templates = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined)
    templates.filters |= {
        "bytes": _known(size), "count": _known("{:,}".format), "number": _known(count), "moment": _known(_moment),
        "span": _known(span), "rate": _known("{:,.1f}".format),
        "hour": _hour, "hour_before": lambda end: _hour(end - timedelta(hours=1)), "words": _words,
        "sign": lambda state: _SIGNS[state][0], "shortened": shortened, "day": _day, "quoted": _quoted,
        "plain_times": plain_times,
        "instant": lambda moment: f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:23],
        "second": lambda moment: f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
        "clock": lambda moment: f"{moment.astimezone(UTC):%H:%M:%S}",
        "path": lambda text: quote(text, safe=""),
    }  # fmt: skip
    templates.globals["legend"] = [(state, sign, words) for state, (sign, words) in _SIGNS.items()]
    return templates


def _quoted(text: str) -> Markup:
    """Return a message with what it quotes as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _known(spell: Callable[..., str]) -> Callable[..., str]:
    """Return a filter that spells None, which is unknown, as a dash."""
    return lambda value, *more: NOTHING if value is None else spell(value, *more)


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


def _hour(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H}"


def _day(cell: DayCell) -> str:
    """Return the words of a day: its hours by state, and its records."""
    hours = [f"{count(number, 'hour')} {_SIGNS[state][1]}" for state, number in cell.hours.items() if state in _SIGNS]
    records = [count(cell.rows, "record")] if cell.rows else []
    return f"{cell.day}: {', '.join([*hours, *records]) or 'no run has looked at it'}"


def _words(cell: HourCell, archive: str) -> str:
    """Return the words of an hour; a command is on its page."""
    state = _SIGNS[cell.state][1] if cell.state in _SIGNS else "no run has looked at it"
    parts = [f"{_moment(cell.hour_start)}: {state}"]
    if cell.rows:
        parts.append(count(cell.rows, "record"))
    if cell.late_rows:
        parts.append(f"{cell.late_rows:,} late")
    if cell.dead_letters:
        parts.append(f"{count(cell.dead_letters, 'object')} of dead letters")
    if cell.damaged:
        parts.append(f"{count(cell.damaged, 'object')} missing or wrong")
    return ", ".join(parts) + (f". {split_reason(archive, cell.reason).lack}" if cell.reason else "")

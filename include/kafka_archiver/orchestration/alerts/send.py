"""Send an alert to its receivers: connections of known types, or Airflow's notifiers, by connection type or by class.

Only installed notifiers can be used. They are called without rendering their templates: an error may hold braces.
"""

import functools
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from airflow.sdk import Connection
from airflow.sdk.log import mask_secret

from kafka_archiver.config.alerts import Notifier, Receiver
from kafka_archiver.messages.errors import ConfigError, TransientError, kind_in_words
from kafka_archiver.orchestration.alerts.message import Message
from kafka_archiver.orchestration.connections import NamedConnection, find_connection

_PROVIDERS = "airflow.providers."


class Known(NamedTuple):
    """A notifier that a type of connection stands for. `required`: arguments in the connection's extra or the YAML."""

    path: str
    arguments: Callable[[str, Message], dict[str, Any]]
    required: tuple[str, ...] = ()


KNOWN: dict[str, Known] = {
    "slackwebhook": Known(
        f"{_PROVIDERS}slack.notifications.slack_webhook.SlackWebhookNotifier",
        lambda conn_id, message: {"slack_webhook_conn_id": conn_id, "text": message.text},
    ),
    "slack": Known(
        f"{_PROVIDERS}slack.notifications.slack.SlackNotifier",
        lambda conn_id, message: {"slack_conn_id": conn_id, "text": message.text},
        ("channel",),
    ),
    "aws": Known(
        f"{_PROVIDERS}amazon.aws.notifications.sns.SnsNotifier",
        # SNS refuses longer subjects.
        lambda conn_id, message: {"aws_conn_id": conn_id, "subject": message.title[:100], "message": message.text},
        ("target_arn",),
    ),
    "apprise": Known(
        f"{_PROVIDERS}apprise.notifications.apprise.AppriseNotifier",
        lambda conn_id, message: {"apprise_conn_id": conn_id, "title": message.title, "body": "\n".join(message.lines)},
    ),
    "discord": Known(
        f"{_PROVIDERS}discord.notifications.discord.DiscordNotifier",
        lambda conn_id, message: {"discord_conn_id": conn_id, "text": message.text},
    ),
}


def notifier_class(path: str) -> Any:
    """Import a notifier's class.

    :raises ConfigError: it cannot be imported, or is no notifier; for a provider of Airflow, the package to install.
    """
    module, _, name = path.rpartition(".")
    try:
        notifier = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        package = _package(module)
        install = f"; install {package} where Airflow's workers, DAG processor and triggerer run" if package else ""
        raise ConfigError(f"the notifier {path} cannot be imported: {error}{install}") from None
    if not callable(getattr(notifier, "notify", None)):
        raise ConfigError(f"{path} is no notifier of Airflow; expected a class with a method `notify`")
    return notifier


def _package(module: str) -> str:
    """Return the distribution of a provider's module, as apache-airflow-providers-slack; empty for other modules."""
    if not module.startswith(_PROVIDERS):
        return ""
    name = module.removeprefix(_PROVIDERS).partition(".notifications")[0].removesuffix(".aws")
    return f"apache-airflow-providers-{re.sub('[._]', '-', name)}"


def arguments(options: Mapping[str, Any], message: Message) -> dict[str, Any]:
    """Return the options with the alert in the place of {title}, {text} and {link}; other braces stay."""
    parts = {"{title}": message.title, "{text}": message.text, "{link}": message.link}

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(item) for item in value]
        if not isinstance(value, str):
            return value
        return re.sub(r"\{(?:title|text|link)\}", lambda placeholder: parts[placeholder[0]], value)

    return {name: filled(value) for name, value in options.items()}


log = logging.getLogger(__name__)
HTTP_SECONDS = 20
KINDS = ("http", "smtp", *KNOWN)


def send_all(receivers: Sequence[Receiver], key: str, message: Message, seconds: float) -> bool:
    """Send one message to all receivers at once, so that one that does not answer holds up none of the others.

    :param seconds: for all of them together. Airflow's mail hook alone may take minutes.
    :returns: whether one of them took it, or there is none.
    """
    taken: list[bool] = []

    def take(receiver: Receiver) -> None:
        taken.append(send(receiver, key, message))

    threads = {
        name_of(receiver): threading.Thread(target=take, args=(receiver,), daemon=True) for receiver in receivers
    }
    for thread in threads.values():
        thread.start()
    end = time.monotonic() + seconds
    for name, thread in threads.items():
        thread.join(max(0.0, end - time.monotonic()))
        if thread.is_alive():
            log.error("the alert was not sent by %s within %.0f seconds", name, seconds)
    return any(taken) or not threads


def send(receiver: Receiver, key: str, message: Message) -> bool:
    """Send one message. A receiver that is down, or wrong, is logged: it must not stop the others.

    :param key: the key of `alerts` that has the receiver.
    :returns: whether the receiver took it.
    """
    name, hidden = name_of(receiver), []
    try:
        if isinstance(receiver, Notifier) and receiver.notifier:
            how = receiver.notifier
            notifier_class(how)(**arguments(receiver.options, message)).notify({})
        else:
            options = receiver.options if isinstance(receiver, Notifier) else {}
            connection = find_connection(named_connection(receiver, key))
            how = str(connection.conn_type)
            hidden = _secret_parts(connection.host or "")
            for part in hidden:
                mask_secret(part)
            _sender(how)(connection, message, options)
    except Exception as error:  # noqa: BLE001 - see above
        # Airflow masks secrets in a task's log, but not in the executor's copy of it.
        text = functools.reduce(lambda masked, part: masked.replace(part, "***"), hidden, str(error))
        log.error("the alert could not be sent by %s: %s: %s", name, kind_in_words(error), text)
        return False
    log.info("sent an alert by %s (%s)", name, how)
    return True


def check_receiver(receiver: Receiver, key: str) -> str:
    """Return the type of the receiver's connection, or its notifier. Sends nothing.

    :param key: the key of `alerts` that names it.
    :raises ConfigError: the connection is missing, of another type or incomplete, or the notifier is not installed.
    """
    if isinstance(receiver, Notifier) and receiver.notifier:
        notifier_class(receiver.notifier)
        return receiver.notifier
    connection = find_connection(named_connection(receiver, key))
    kind = str(connection.conn_type)
    if kind in KNOWN:
        _require(kind, connection, receiver.options if isinstance(receiver, Notifier) else {})
        notifier_class(KNOWN[kind].path)
    return kind


def named_connection(receiver: Receiver, key: str) -> NamedConnection:
    """Return the connection of a receiver that has one."""
    conn_id = receiver if isinstance(receiver, str) else str(receiver.connection)
    return NamedConnection(conn_id, f"alerts.{key}", KINDS)


def name_of(receiver: Receiver) -> str:
    """Return the receiver's name in messages."""
    if isinstance(receiver, str):
        return f"connection {receiver}"
    return f"connection {receiver.connection}" if receiver.connection else f"notifier {receiver.notifier}"


def _secret_parts(address: str) -> list[str]:
    """Return the secret parts of a webhook's address, plain and URL-quoted: errors repeat the address."""
    parts = urlsplit(address)
    secrets = [part for part in (parts.path.strip("/"), parts.query, parts.password) if part]
    return [*secrets, *(quote(part, safe="!#$%&'()*+,/:;=?@[]~") for part in secrets)]


def _sender(kind: str) -> Callable[[Connection, Message, dict[str, Any]], None]:
    return {"http": _post, "smtp": _mail}.get(kind) or functools.partial(_notify, kind)


def _notify(kind: str, connection: Connection, message: Message, options: dict[str, Any]) -> None:
    known, extra = KNOWN[kind], connection.extra_dejson
    _require(kind, connection, options)
    from_extra = {name: extra[name] for name in known.required if name in extra}
    own = {**known.arguments(str(connection.conn_id), message), **from_extra, **arguments(options, message)}
    notifier_class(known.path)(**own).notify({})


def _require(kind: str, connection: Connection, options: dict[str, Any]) -> None:
    lacking = [name for name in KNOWN[kind].required if name not in {**connection.extra_dejson, **options}]
    if lacking:
        raise ConfigError(
            f"Airflow connection {connection.conn_id!r} of type {kind!r} needs {', '.join(lacking)} in its extra, or "
            f"in the YAML: {{connection: {connection.conn_id}, options: {{{lacking[0]}: …}}}}"
        )


# Hooks are imported late: the import takes a quarter of a CPU second, which DAG parsing must not pay.
def _post(connection: Connection, message: Message, options: dict[str, Any]) -> None:
    from airflow.providers.http.hooks.http import HttpHook

    hook = HttpHook(http_conn_id=connection.conn_id)
    # Without a timeout, a server that accepts and does not answer would hold the task for ever.
    timeout = connection.extra_dejson.get("timeout", HTTP_SECONDS)
    # Not the hook's own `run`: it logs the address if the server does not answer.
    answer = hook.get_conn().post(
        hook.url_from_endpoint(None),
        json=message.document() | options,
        timeout=timeout,
        # A redirected POST becomes a GET: a log-in page would take the alert.
        allow_redirects=False,
    )
    if 300 <= answer.status_code < 400:
        host = urlsplit(answer.headers.get("Location", "")).hostname or "the same host"
        raise TransientError(
            f"HTTP {answer.status_code}: it redirects to {host}, as to a log-in page, and took nothing; correct the "
            "connection's address"
        )
    if not answer.ok:
        raise TransientError(f"HTTP {answer.status_code} {answer.reason}")


def _mail(connection: Connection, message: Message, options: dict[str, Any]) -> None:
    from airflow.providers.smtp.hooks.smtp import SmtpHook

    recipients = options.get("to_email") or connection.extra_dejson.get("to_email")
    if not recipients:
        raise ConfigError(
            f"Airflow connection {connection.conn_id!r} (alerts) names no recipient; expected `to_email` in "
            'its extra, as in {"from_email": "airflow@example.com", "to_email": "on-call@example.com"}'
        )
    with SmtpHook(smtp_conn_id=connection.conn_id) as hook:
        hook.send_email_smtp(to=recipients, subject=message.title, html_content=message.as_html())

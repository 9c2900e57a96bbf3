"""Airflow's own notifiers, by connection type or by class. Only installed ones can be used."""

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.alerts.message import Message

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

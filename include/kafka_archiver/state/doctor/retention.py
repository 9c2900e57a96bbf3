"""The check that a topic keeps its records until the archive has them. Pure."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from kafka_archiver.config.times import longest_interval
from kafka_archiver.messages.actions import command
from kafka_archiver.messages.kafka_tools import KafkaTools
from kafka_archiver.state.doctor.check import Finding, ok, problem, warning

# Records should survive an outage of one night.
INTERVALS = 6
# Kafka's own default for message.timestamp.after.max.ms; before release 3.6 there was no limit.
_AHEAD = timedelta(hours=1)
_FOREVER = timedelta(days=365 * 100)


def check_retention(
    topic: str, settings: Mapping[str, str], schedule: str | None, tools: KafkaTools
) -> Iterator[Finding]:
    """Check a topic's settings against the archive's schedule (None: by hand only)."""
    name = f"retention of {topic}"
    policies = set(settings.get("cleanup.policy", "delete").split(","))
    kept = int(settings.get("retention.ms", "-1"))
    if "delete" in policies and kept >= 0:
        kept_for = timedelta(milliseconds=min(kept, _FOREVER // timedelta(milliseconds=1)))
        yield _kept(name, topic, kept_for, schedule, tools)
    else:
        yield ok(name, "records are never removed by their age")
    size = int(settings.get("retention.bytes", "-1"))
    if "delete" in policies and size >= 0:
        yield warning(
            name,
            f"retention.bytes is {size:,}",
            "a burst can push records out of a partition before they are archived, whatever their age",
            command(tools.alter_topic(topic, "retention.bytes=-1")),
            "keep it, if no partition gets so much in several intervals",
        )
    if "compact" in policies:
        yield warning(
            f"compaction of {topic}",
            f"cleanup.policy is {settings['cleanup.policy']}",
            "older records of a key may be gone before they are archived; their offsets count as absent",
            command(tools.alter_topic(topic, f"min.compaction.lag.ms={7 * 86_400_000}")),
            "keep it, if the last record of each key is enough",
        )


def _kept(name: str, topic: str, kept: timedelta, schedule: str | None, tools: KafkaTools) -> Finding:
    if schedule is None:
        return ok(name, f"records are kept for {_spelt(kept)}; the archive runs by hand only: run it more often")
    interval = longest_interval(schedule)
    observed = f"records are kept for {_spelt(kept)}, a run is due every {_spelt(interval)}"
    enough = max(interval * 24, timedelta(days=7)) // timedelta(milliseconds=1)
    longer = command(tools.alter_topic(topic, f"retention.ms={enough}"))
    if kept <= interval:
        return problem(
            name, observed, "records are removed before they are archived", longer, "a more frequent `schedule`"
        )
    if kept < INTERVALS * interval:
        means = f"when {kept // interval} runs in a row fail, records are lost"
        return warning(name, observed, means, longer, "a more frequent `schedule`")
    return ok(name, observed)


def check_times(topic: str, settings: Mapping[str, str], tools: KafkaTools) -> Finding:
    """Check which clock gives the hour of a record, and how far it may be wrong."""
    name = f"timestamps of {topic}"
    if settings.get("message.timestamp.type", "CreateTime") != "CreateTime":
        return ok(name, "LogAppendTime: the brokers' clock gives the hour of a record")
    ahead = int(settings.get("message.timestamp.after.max.ms", str(1 << 62)))
    if ahead > 24 * _AHEAD // timedelta(milliseconds=1):
        return warning(
            name,
            "CreateTime, and the brokers accept records with times far ahead (message.timestamp.after.max.ms)",
            "records of a producer with a wrong clock are filed in future hours, and hide the records behind them from "
            "Kafka's time index: backfills of such hours stay incomplete",
            tools.alter_topic(topic, f"message.timestamp.after.max.ms={_AHEAD // timedelta(milliseconds=1)}"),
            "keep it, if the producers' clocks can be trusted",
        )
    return ok(name, f"CreateTime: producers' clocks decide, at most {_spelt(timedelta(milliseconds=ahead))} ahead")


def _spelt(time: timedelta) -> str:
    """Spell a time in the largest unit that gives a whole number, down to seconds."""
    units = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
    name, unit = next(
        ((n, u) for n, u in units.items() if time >= u and not time % u), ("second", timedelta(seconds=1))
    )
    count = time / unit
    return f"{count:g} {name}{'s' * (count != 1)}"

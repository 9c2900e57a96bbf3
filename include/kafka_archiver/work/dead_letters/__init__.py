"""Dead letters come back: archive them by today's settings, once the cause is mended."""

from kafka_archiver.work.dead_letters.find import Hours, Lettered, runs_with_letters
from kafka_archiver.work.dead_letters.outlook import Outlook, outlook
from kafka_archiver.work.dead_letters.plan import replay_letters

__all__ = ["Hours", "Lettered", "Outlook", "outlook", "replay_letters", "runs_with_letters"]

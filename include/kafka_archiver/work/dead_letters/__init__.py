"""Dead letters come back: archive them by today's settings, once the cause is mended."""

from kafka_archiver.work.dead_letters.forecast import Outlook, outlook
from kafka_archiver.work.dead_letters.lettered_runs import Hours, Lettered, runs_with_letters
from kafka_archiver.work.dead_letters.replay_plan import replay_letters

__all__ = ["Hours", "Lettered", "Outlook", "outlook", "replay_letters", "runs_with_letters"]

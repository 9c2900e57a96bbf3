"""Dead letters come back: archive them by today's settings, once the cause is mended."""

from kafka_archiver.work.dead_letters.forecast import ReplayForecast, forecast_replay
from kafka_archiver.work.dead_letters.lettered_runs import HourRange, RunWithLetters, runs_with_letters
from kafka_archiver.work.dead_letters.replay_plan import replay_letters

__all__ = ["HourRange", "ReplayForecast", "RunWithLetters", "forecast_replay", "replay_letters", "runs_with_letters"]

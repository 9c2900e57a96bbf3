"""Coverage: the verdict on each hour of some days, and everything that is known of one hour."""

from kafka_archiver.state.coverage.cells import Coverage, HourCell, State
from kafka_archiver.state.coverage.hour import HourInFull, hour_in_full
from kafka_archiver.state.coverage.read import Heads, read_coverage

__all__ = ["Coverage", "Heads", "HourCell", "HourInFull", "State", "hour_in_full", "read_coverage"]

"""Coverage: the verdict on each hour of some days, and everything that is known of one hour."""

from kafka_archiver.state.coverage.cells import Coverage, DayCell, HourCell, ProofHead, State
from kafka_archiver.state.coverage.hour import HourDetail, read_hour
from kafka_archiver.state.coverage.read import ProofHeads, read_coverage

__all__ = [
    "Coverage",
    "DayCell",
    "HourCell",
    "HourDetail",
    "ProofHead",
    "ProofHeads",
    "State",
    "read_coverage",
    "read_hour",
]

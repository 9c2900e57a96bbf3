"""The doctor: finds strange states before a run does, and tries what a run needs. One module for each subject."""

from kafka_archiver.state.doctor.check import Finding
from kafka_archiver.state.doctor.examine import examine

__all__ = ["Finding", "examine"]

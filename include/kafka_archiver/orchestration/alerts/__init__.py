"""Alerts: what is reported, to whom, and when (`incidents`: when something begins or changes, and when it is over)."""

"""Alerts about failed tasks: the cause, and the recipients."""

"""Errors of the stack that the user can correct."""


class StackError(Exception):
    """Says what was found, what was expected and what to do; shown without a traceback."""

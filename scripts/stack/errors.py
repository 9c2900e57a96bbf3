"""What goes wrong with the stack in a way that the person at the terminal can mend."""


class StackError(Exception):
    """Says what was found, what was expected and what to do; shown without a traceback."""

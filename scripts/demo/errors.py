"""Why the demo stops."""


class DemoError(Exception):
    """Something is not as promised; the message is one line that says what."""

"""A store that counts its requests."""

from typing import Any


class Counted:
    """A store that counts its requests by key, and can fail."""

    def __init__(self, store: Any) -> None:
        self._store, self.asked, self.failure = store, list[str](), None

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if not callable(attribute):
            return attribute

        def ask(*args: Any, **kwargs: Any) -> Any:
            if self.failure:
                raise self.failure
            self.asked.append(f"{name} {args[0] if args else ''}")
            return attribute(*args, **kwargs)

        return ask

"""Rules for S3Proxy: the first requests of every kind in a run have faults."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.proxy import Action, Request

# Documents without a fixed name, by folder.
FOLDERS = {"/hours/": "hour", "/line/": "line", "/_topics/": "claim"}


def kind_of(request: Request) -> str:
    """The operation, and the document."""
    if request.verb not in ("get", "put"):
        return request.verb
    folder = next((name for part, name in FOLDERS.items() if part in request.key), None)
    return f"{request.verb} {folder or request.key.rsplit('/', 1)[-1]}"


# The requests of the job, in order; then those of the whole run.
JOB = ["get plan.json", "get manifest.json", "get intent.json", "start", "part", "put intent.json", "complete"]
JOB += ["put manifest.json"]
RUN = ["get progress.json", "get line", "get commit.json", "put claim", "put line", "put plan.json", *JOB]
RUN += ["head", "uploads", "list", "put commit.json", "get hour", "put hour", "put settled.json", "put progress.json"]
RUN += ["get settled.json"]


@dataclass
class Faults:
    """The n-th request of each kind has the n-th fault.

    :param carried_out: the server carries out the requests, and the faults concern the answers.
    """

    kinds: Sequence[str]
    actions: Sequence[Action]
    carried_out: bool = False
    befallen: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request, done: bool) -> Action:
        kind = kind_of(request)
        if done != self.carried_out or kind not in self.kinds:
            return None
        with self._lock:
            earlier = self.befallen.count(kind)
            action = self.actions[earlier] if earlier < len(self.actions) else None
            if action == "damage" and done and request.status != 200:
                # There is no document: a damaged 404 has no checksum.
                return None
            self.befallen += [kind] * (action is not None)
            return action

    def all_happened(self) -> bool:
        """Return True if every kind had every fault."""
        return sorted(self.befallen) == sorted([*self.kinds] * len(self.actions))

"""What a repair makes of a run: the same objects but for those that nobody can bring back. Pure."""

from collections import Counter
from collections.abc import Iterable

from kafka_archiver.keys import is_dead_letter
from kafka_archiver.manifest import ChunkAccount, Manifest, ObjectEntry, totals
from kafka_archiver.plan import Plan


def without_lost(plan: Plan, before: Manifest) -> Manifest:
    """The manifest of a repair.

    :param plan: the repair's.
    :param before: what the run had written that it supersedes.
    """
    gone = [o for o in before.stored if o.key in plan.lost_objects]
    archived = _rows(o for o in gone if not is_dead_letter(o.key))
    dead = _rows(o for o in gone if is_dead_letter(o.key))

    def account(old: ChunkAccount) -> ChunkAccount:
        place = (old.topic, old.partition, old.start)
        fewer, dead_lettered = archived[place], dead[place]
        return old.model_copy(
            update={
                "archived": old.archived - fewer,
                "dead_lettered": old.dead_lettered - dead_lettered,
                "lost": old.lost + fewer + dead_lettered,
            }
        )

    chunks = tuple(map(account, before.chunks))
    return before.model_copy(
        update={
            "run": plan.run,
            "revision": plan.revision,
            "plan_digest": plan.digest,
            "account": totals(chunks),
            "objects": tuple(o for o in before.objects if o not in gone),
            "dead_letters": tuple(o for o in before.dead_letters if o not in gone),
            "lost_objects": tuple(sorted((*before.lost_objects, *gone), key=lambda o: o.key)),
            "chunks": chunks,
        }
    )


def _rows(objects: Iterable[ObjectEntry]) -> Counter[tuple[str, int, int]]:
    """How many records there were of each chunk."""
    found: Counter[tuple[str, int, int]] = Counter()
    for o in objects:
        found[o.topic, o.partition, o.chunk_start] += o.rows
    return found

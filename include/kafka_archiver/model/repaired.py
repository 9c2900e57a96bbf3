"""The manifest of a repair: the objects of the run, except those that cannot be recovered. Pure."""

from kafka_archiver.model.chunk_accounts import ChunkAccount, totals
from kafka_archiver.model.manifest import Manifest, by_chunk
from kafka_archiver.model.object_keys import is_dead_letter
from kafka_archiver.model.plan import Plan


def without_lost(plan: Plan, before: Manifest) -> Manifest:
    """The manifest of a repair. A lost object's sidecar goes with it.

    :param plan: the repair's.
    :param before: the manifest of the run that it supersedes.
    """
    lost = set(plan.lost_objects)
    gone = [o for o in before.stored if o.key in lost]
    archived = [o for o in gone if not is_dead_letter(o.key)]
    fewer, fewer_rows = by_chunk((o, o.offsets) for o in archived), by_chunk((o, o.rows) for o in archived)
    fewer_letters = by_chunk((o, o.rows) for o in gone if is_dead_letter(o.key))

    def account(old: ChunkAccount) -> ChunkAccount:
        # Rows of one record may be in several lost objects: it is lost once.
        gone, letters = min(fewer.get(old.place, 0), old.archived), fewer_letters.get(old.place, 0)
        archived, rows = old.archived - gone, old.stored["archived"] - fewer_rows.get(old.place, 0)
        return old.model_copy(
            update={
                "archived": archived,
                "dead_lettered": old.dead_lettered - letters,
                "lost": old.lost + gone + letters,
                "rows": None if rows == archived else rows,
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
            "sidecars": tuple(o for o in before.sidecars if not {o.key, o.sidecar_of} & lost),
            "lost_objects": tuple(sorted((*before.lost_objects, *gone), key=lambda o: o.key)),
            "chunks": chunks,
        }
    )

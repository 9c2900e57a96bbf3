"""The manifest of a replay of dead letters: the kept objects, and what became of the letters. Pure."""

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.chunk_accounts import ChunkAccount, totals
from kafka_archiver.model.manifest import Intent, Manifest
from kafka_archiver.model.plan import Plan

_LETTERS = ("archived", "filtered", "dead_lettered")


def with_dead_letters(before: ChunkAccount, read: ChunkAccount) -> ChunkAccount:
    """The account of a chunk after its dead letters were read again. Every other offset keeps its fate.

    :param read: the account of the letters alone; to it, all other offsets of the chunk are absent.
    :raises IntegrityError: the letters are not as many as the chunk had.
    """
    letters = sum(getattr(read, fate) for fate in _LETTERS)
    if letters != before.dead_lettered:
        raise IntegrityError(f"{before} has {before.dead_lettered} dead letters, but {letters} were read")
    archived = before.archived + read.archived
    rows = before.stored["archived"] + read.stored["archived"]
    return before.model_copy(
        update={
            "archived": archived,
            "filtered": before.filtered + read.filtered,
            "dead_lettered": read.dead_lettered,
            "rows": None if rows == archived else rows,
            "unnamed": before.unnamed + read.unnamed,
            "set_aside": read.set_aside,
        }
    )


def manifest_of(plan: Plan, before: Manifest, intent: Intent) -> Manifest:
    """The manifest of a replay of dead letters.

    :param before: the manifest of the run that it supersedes.
    :param intent: of the attempt that made everything visible: the new objects, and the accounts of their chunks.
    """
    read = {a.place: a for a in intent.chunks}
    chunks = tuple(read.get(a.place, a) for a in before.chunks)
    gone = {item.key for item in plan.letters}
    kept = [o for o in before.stored if o.key not in gone]
    # The plan's lost ranges are in the accounts of `before` already.
    manifest = Manifest.of(plan, [*kept, *intent.objects], (), intent.policies)
    update = {"chunks": chunks, "account": totals(chunks), "lost_objects": before.lost_objects}
    return manifest.model_copy(update=update)

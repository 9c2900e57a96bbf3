"""Wrap the data keys of an archive by its present master key. Objects and plans stay as they are."""

from collections.abc import Callable
from typing import NamedTuple

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, IntegrityError


class Rotated(NamedTuple):
    """The ids of data keys: wrapped anew, and wrapped by the present master key already."""

    changed: tuple[str, ...]
    same: tuple[str, ...]


def rotate(ledger: Ledger, dry_run: bool = False, tell: Callable[[str], object] = print) -> Rotated:
    """Wrap anew what an earlier master key has wrapped. May be repeated after a failure: it goes on.

    Each document is replaced only as it was read, and only once the new text has given the same data key.

    :param dry_run: change nothing.
    :raises ConfigError: the archive has no master key, or a data key was wrapped by one that is not given.
    :raises ArchiverError: a document is damaged; KMS or the store does not answer.
    """
    if ledger.keyring is None:
        raise ConfigError(
            f"archive {ledger.archive} has no master key: expected `store.encryption: {{client: …}}` in its YAML"
        )
    changed, same = [], []
    ids = ledger.data_keys()
    for number, key_id in enumerate(ids, start=1):
        before = ledger.data_key(key_id)
        new = ledger.keyring.rewrapped(before.document) if before.document else None
        if new is None:
            same.append(key_id)
            continue
        changed.append(key_id)
        if not dry_run and not ledger.put_data_key(new, before):
            raise IntegrityError(f"data key {key_id} was changed meanwhile, by another rotation: run this one again")
        if number % 1000 == 0:
            tell(f"{ledger.archive}: {number:,} of {len(ids):,} data keys")
    return Rotated(tuple(changed), tuple(same))

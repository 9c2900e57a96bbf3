"""The data keys of an archive: a new one for each plan, stored before the plan names it; and their rotation."""

from collections.abc import Callable
from typing import NamedTuple

from kafka_archiver.context.archive_context import Context
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.model.plan import Plan

# Plans that may have had no encryption.
_MOST_PLANS = 20


def with_data_key(context: Context, plan: Plan) -> Plan:
    """Return the plan with a data key of its own, if its settings ask for encryption.

    Call it before the plan is appended to the line. If that fails, the key stays unused.

    :raises ConfigError: no master key is configured, or another one than that of the plans before.
    :raises ArchiverError: KMS does not wrap the key.
    """
    if plan.settings.encryption is None:
        return plan
    if context.ledger.keyring is None:
        raise ConfigError(
            f"archive {plan.archive} encrypts its objects, but no master key is given: expected "
            "`store.encryption: {client: {connection: …}}` or `{client: {kms_key_id: …}}`"
        )
    _require_same_master(context, plan.number - 1)
    key, document = context.ledger.keyring.new(plan.archive, context.clock())
    context.ledger.create_data_key(document)
    return plan.model_copy(update={"data_key": key.id})


def _require_same_master(context: Context, last: int) -> None:
    """Open the newest data key: an archive must not go on under a master key that does not open what it has.

    :param last: the last plan of the line.
    """
    for number in range(last, max(last - _MOST_PLANS, 0), -1):
        before = context.ledger.planned(number)
        # Without its document, no master key would help.
        if before and before.data_key and context.ledger.has_data_key(before.data_key):
            context.ledger.open_key(before.data_key)
            return


class RotatedKeys(NamedTuple):
    """The ids of data keys: wrapped anew, and wrapped by the present master key already."""

    changed: tuple[str, ...]
    same: tuple[str, ...]


def rotate_data_keys(ledger: Ledger, dry_run: bool = False, tell: Callable[[str], object] = print) -> RotatedKeys:
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
    return RotatedKeys(tuple(changed), tuple(same))

"""The data key of a plan: new for each plan, and stored, wrapped, before the plan names it."""

from kafka_archiver.context.context import Context
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.plan import Plan

# Plans that may have had no encryption.
_LOOKED_AT = 20


def with_data_key(context: Context, plan: Plan) -> Plan:
    """The plan with a data key of its own, if its settings ask for encryption.

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
    for number in range(last, max(last - _LOOKED_AT, 0), -1):
        before = context.ledger.planned(number)
        # Without its document, no master key would help.
        if before and before.data_key and context.ledger.has_data_key(before.data_key):
            context.ledger.open_key(before.data_key)
            return

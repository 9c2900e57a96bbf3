"""The data key of a plan: new for each plan, and stored, wrapped, before the plan names it."""

from kafka_archiver.errors import ConfigError
from kafka_archiver.plan import Plan
from kafka_archiver.steps.context import Context


def with_data_key(context: Context, plan: Plan) -> Plan:
    """The plan with a data key of its own, if its settings ask for encryption.

    Call it before the plan is appended to the line. If that fails, the key stays unused.

    :raises ConfigError: no master key is configured.
    :raises ArchiverError: KMS does not wrap the key.
    """
    if plan.settings.encryption is None:
        return plan
    if context.ledger.keyring is None:
        raise ConfigError(
            f"archive {plan.archive} encrypts its objects, but no master key is given: expected "
            "`store.encryption: {client: {connection: …}}` or `{client: {kms_key_id: …}}`"
        )
    key, document = context.ledger.keyring.new(plan.archive, context.clock())
    context.ledger.create_data_key(document)
    return plan.model_copy(update={"data_key": key.id})

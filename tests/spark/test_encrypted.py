"""The job encrypts in its tasks: with both readers, by spark-submit, and no key is in what it prints."""

import base64

import pytest

from kafka_archiver.audit.inspection import audit
from tests.support.archiver import Services, hour
from tests.support.topics import DAY, Record

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SECRET = base64.b64encode(b"the master key of this test, 32.").decode()
CLIENT = {"encryption": {"client": {"connection": "master_key"}}, "content": "record"}
RECORDS = [Record(0, DAY + n, b'{"a secret of the customer":%d}' % n) for n in range(50)]


@pytest.mark.usefixtures("spark")
def test_both_readers_encrypt_to_the_same_bytes(services: Services) -> None:
    archiver = services.archive(RECORDS, settings=CLIENT, master_keys={"secret": SECRET})
    archiver.run(hour(1))
    before = archiver.etags()
    assert all(key.endswith(".jsonl.gz.enc") for key in before)
    for key in before:
        archiver.context.store.delete(key)
    job = archiver.job()
    job.engine._reader = "spark"
    job.run(hour(1).id)
    assert archiver.etags() == before
    keyring = archiver.context.ledger.keyring
    report = audit(archiver.archive, archiver.context.store, archiver.now[0], deep=True, keyring=keyring)
    assert (report.findings, report.counts.rows, report.counts.read) == ((), 50, len(before))


def test_a_submitted_job_gets_the_master_key_and_prints_no_key(services: Services) -> None:
    archiver = services.archive(RECORDS, settings=CLIENT, master_keys={"secret": SECRET})
    work = archiver.plan(hour(1))
    plan = archiver.planned(hour(1).id)
    assert plan.data_key
    secret = archiver.context.ledger.open_key(plan.data_key).secret
    job_text = archiver.submit(work.archive) + " ".join(archiver.command(work.archive))
    for hidden in (SECRET, secret.hex(), repr(secret)[2:-1], base64.b64encode(secret).decode()):
        assert hidden not in job_text
    archiver.finish(work)
    for stat in archiver.context.store.list(""):
        data = archiver.context.store.get(stat.key) or b""
        assert b"a secret of the customer" not in data
        for key in (secret, base64.b64encode(secret), secret.hex().encode(), SECRET.encode()):
            assert key not in data, stat.key
    keyring = archiver.context.ledger.keyring
    assert audit(archiver.archive, archiver.context.store, archiver.now[0], deep=True, keyring=keyring).findings == ()

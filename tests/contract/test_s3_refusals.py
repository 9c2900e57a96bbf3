"""What the real S3 server's refusals become."""

import pytest

from kafka_archiver.errors import PermanentError
from kafka_archiver.store import Store, open_store
from scripts.stack.s3 import S3, Credentials

pytestmark = pytest.mark.contract


def _store(server: S3, credentials: Credentials = S3.owner, bucket: str = S3.bucket) -> Store:
    return open_store(f"s3://{bucket}/refusals", server.options(credentials))


def test_a_missing_bucket_is_named_by_every_operation(s3: S3) -> None:
    store = _store(s3, bucket="no-such-bucket")
    asked = [
        lambda: store.get("k"),
        lambda: store.head("k"),
        lambda: store.put("k", b""),
        lambda: store.create("k", b""),
        lambda: list(store.list("")),
        lambda: store.start_upload("k"),
        lambda: list(store.list_uploads("")),
    ]
    for ask in asked:
        with pytest.raises(PermanentError, match=f"bucket no-such-bucket does not exist at {s3.endpoint_url}; create"):
            ask()


def test_a_reader_may_read_and_is_told_what_it_may_not(s3: S3) -> None:
    _store(s3).put("k", b"x")
    reader = _store(s3, s3.reader)
    assert reader.get("k") == b"x"
    with pytest.raises(PermanentError, match=r"access denied to k in bucket archive .* need s3:PutObject"):
        reader.put("k", b"y")
    with pytest.raises(PermanentError, match=r"access denied to k in bucket archive .* need s3:PutObject"):
        reader.start_upload("k")


@pytest.mark.parametrize("wrong", [Credentials(S3.owner.access_key, "wrong"), Credentials("nobody", "wrong")])
def test_wrong_credentials_are_refused_without_repeating_them(s3: S3, wrong: Credentials) -> None:
    with pytest.raises(PermanentError, match="refuses the credentials") as caught:
        _store(s3, wrong).get("k")
    assert wrong.secret_key not in str(caught.value)

"""An upload to Azure that was aborted is gone, whatever its attempt does when it wakes up."""

import uuid
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from kafka_archiver.messages.errors import TransientError
from kafka_archiver.store import open_store
from kafka_archiver.store.azure import AzureStore
from kafka_archiver.store.base import PendingUpload
from tests.support.azurite import Azurite

pytestmark = pytest.mark.contract
CONTENT = b"a record\n"


@pytest.fixture
def store(azurite: Azurite) -> AzureStore:
    store = open_store(f"az://{azurite.container}/{uuid.uuid4().hex}", azurite.options())
    assert isinstance(store, AzureStore)
    return store


def upload(store: AzureStore, key: str = "k") -> PendingUpload:
    pending = store.start_upload(key)
    return pending._replace(parts=(store.upload_part(pending, 1, CONTENT, zlib.crc32(CONTENT)),))


def complete_asleep(store: AzureStore, pending: PendingUpload, meanwhile: Callable[[], object]) -> str:
    """Complete an upload; something happens between its check and the request that makes it visible."""
    check, times = store._is_pending, []

    def asleep(upload: PendingUpload) -> bool:
        is_pending = check(upload)
        if not times:
            times.append(is_pending)
            meanwhile()
        return is_pending

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_is_pending", asleep)
        return store.complete_upload(pending)


def test_an_attempt_that_slept_before_it_completes_an_aborted_upload_makes_nothing_visible(store: AzureStore) -> None:
    asleep = upload(store)
    with pytest.raises(TransientError, match="the upload of k is gone"):
        complete_asleep(store, asleep, lambda: store.abort_upload("k", asleep.upload_id))
    assert list(store.list("")) == list(store.list_uploads("")) == []
    store.complete_upload(upload(store))
    assert store.get("k") == CONTENT


def test_nor_if_the_object_of_another_attempt_was_there_and_is_deleted(store: AzureStore) -> None:
    store.complete_upload(upload(store))
    asleep = upload(store)

    def discarded() -> None:
        store.abort_upload("k", asleep.upload_id)
        store.delete("k")

    with pytest.raises(TransientError, match="the upload of k is gone"):
        complete_asleep(store, asleep, discarded)
    assert store.get("k") is None


def test_an_abort_leaves_the_uploads_of_others_and_the_object_alone(store: AzureStore) -> None:
    own, aborted = upload(store), upload(store)
    store.abort_upload("k", aborted.upload_id)
    assert [upload_id for _, upload_id, _ in store.list_uploads("")] == [own.upload_id]
    etag = store.complete_upload(own)
    late = upload(store)
    store.abort_upload("k", late.upload_id)
    stat = store.head("k")
    assert stat is not None
    assert (store.get("k"), stat.etag) == (CONTENT, etag)
    assert list(store.list_uploads("")) == []


@pytest.mark.parametrize("request_number", range(1, 8))
def test_an_abort_that_was_stopped_is_finished_by_the_next(store: AzureStore, request_number: int) -> None:
    asleep, ask, requests = upload(store), store._ask, []

    def stopped(*arguments: Any) -> Any:
        requests.append(arguments)
        if len(requests) == request_number:
            raise TransientError("stopped")
        return ask(*arguments)

    def aborted() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "_ask", stopped)
            with pytest.raises(TransientError, match="stopped"):
                store.abort_upload("k", asleep.upload_id)
        for key, upload_id, _ in list(store.list_uploads("")):
            store.abort_upload(key, upload_id)

    with pytest.raises(TransientError, match="the upload of k is gone"):
        complete_asleep(store, asleep, aborted)
    assert list(store.list("")) == list(store.list_uploads("")) == []

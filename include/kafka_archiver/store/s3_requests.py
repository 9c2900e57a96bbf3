"""The parameters that a store's options add to its requests: encryption, storage class, tags, ACL, who pays, who owns
the bucket.

One table. The parameters of a request are those that S3's operation takes, by botocore's own model of S3, so that no
kind of request is forgotten.
"""

import base64
import functools
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.store.options import S3Options
from kafka_archiver.store.s3_sums import Answer

# The parameter of S3 for an option, and its value. None: the request does not have it.
_TABLE: Mapping[str, Callable[[S3Options], Any]] = {
    "ServerSideEncryption": lambda options: options.sse,
    "SSEKMSKeyId": lambda options: options.sse_kms_key_id,
    "SSEKMSEncryptionContext": lambda options: _base64(options.sse_kms_context),
    "BucketKeyEnabled": lambda options: options.sse_bucket_key == "true" or None,
    "SSECustomerAlgorithm": lambda options: "AES256" if options.sse_customer else None,
    # botocore adds the MD5 of the key.
    "SSECustomerKey": lambda options: options.customer_key or None,
    "StorageClass": lambda options: options.storage_class,
    "Tagging": lambda options: options.tags,
    "ACL": lambda options: options.acl,
    "RequestPayer": lambda options: "requester" if options.requester_pays == "true" else None,
    "ExpectedBucketOwner": lambda options: options.bucket_owner,
}
# The documents of the ledger are written with PutObject, and are read all the time: a class for rare reads costs more.
_NOT_OF = {"put_object": {"StorageClass"}}
# Parameters that the answer repeats if the store has done it.
_CONFIRMED = {"ServerSideEncryption", "SSECustomerAlgorithm"}
_WRITES = ("put_object", "upload_part")
_ENCRYPTED = {*_WRITES, "create_multipart_upload", "complete_multipart_upload"}
# Of a request that the store does not take: not of one that comes too early.
_REFUSALS = {400, 403, 500, 501}


class ExtraParameters:
    """The parameters that options of the store add to requests.

    :param client: boto3's, of S3.
    """

    def __init__(self, options: S3Options, client: Any) -> None:
        fields = {name: value(options) for name, value in _TABLE.items()}
        self._all = {name: value for name, value in fields.items() if value is not None}
        self._client = client
        # Cached: a model is slow, and each request asks.
        self.of = functools.cache(self._of)

    def _of(self, operation: str) -> Mapping[str, Any]:
        """The parameters for an operation, by boto3's method name."""
        name = self._client.meta.method_to_api_mapping[operation]
        taken = self._client.meta.service_model.operation_model(name).input_shape.members
        without = _NOT_OF.get(operation, ())
        return {name: value for name, value in self._all.items() if name in taken and name not in without}

    def hint(self, error: BaseException, operation: str) -> str:
        """Return the likely reason, if the store has refused a write that it was to encrypt."""
        status = (
            error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(error, ClientError) else 0
        )
        if status not in _REFUSALS or operation not in _ENCRYPTED or not _CONFIRMED & self._all.keys():
            return ""
        if self._all.get("ServerSideEncryption") != "aws:kms":
            return "; `store.encryption` asks the store to encrypt, and a store without this encryption may answer so"
        return (
            "; `store.encryption` asks for SSE-KMS: this needs a store with a key management service, an enabled key "
            "there, and credentials with kms:GenerateDataKey and kms:Decrypt. Without them, a store may answer so"
        )

    def check(self, operation: str, answer: Answer, endpoint: str) -> None:
        """Check that the store has encrypted what it was given.

        :raises PermanentError: its answer does not say so: it has stored the bytes as they are.
        """
        if operation not in _WRITES:
            return
        for name in _CONFIRMED & self._all.keys():
            asked, answered = self._all[name], answer.get(name)
            if answered != asked:
                raise PermanentError(
                    f"{endpoint} does not encrypt as `store.encryption` says: expected {name} {asked} in its answer to "
                    f"{operation}, found {answered or 'nothing'}. What it stores is not protected by this key: use a "
                    "store that has this encryption, or another `store.encryption`"
                )


def _base64(text: str | None) -> str | None:
    return None if text is None else base64.b64encode(text.encode()).decode()

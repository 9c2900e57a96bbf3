"""Translates failed S3 requests to messages for operators, permanent or transient.

Messages have only codes and names: botocore's own text may repeat headers, and with them a session token.
"""

from typing import Any, NamedTuple

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    MetadataRetrievalError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProxyConnectionError,
    ReadTimeoutError,
    ResponseStreamingError,
    SSLError,
)
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from kafka_archiver.messages.errors import ArchiverError, ColdObjectError, PermanentError, TransientError, kind_in_words
from kafka_archiver.messages.foreign_text import foreign

# S3 allows so many bytes.
_KEY_LENGTH = 1024
# All errors of a request or of reading its answer. ResponseParserError: an answer with truncated XML.
FAILURES = (BotoCoreError, ClientError, ResponseParserError, HTTPError, OSError)

# No answer, or a truncated one.
_CONNECTION_FAILURES = (
    CredentialRetrievalError,
    EndpointConnectionError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    MetadataRetrievalError,
    ProxyConnectionError,
    ResponseParserError,
    SSLError,
    HTTPError,
    OSError,
)
# In addition to 408, 429 and 5xx. The first three: the request was damaged on its way.
_TRANSIENT_CODES = {
    "BadDigest",
    "IncompleteBody",
    "XAmzContentChecksumMismatch",
    "RequestTimeout",
    "Throttling",
    "ThrottlingException",
    "IDPCommunicationError",
    "ConditionalRequestConflict",
    "OperationAborted",
}
# Answers to a request with a header that the store does not know.
_UNKNOWN = {"InvalidArgument", "InvalidRequest", "NotImplemented"}
_PERMISSIONS = {
    "get_object": "s3:GetObject",
    "head_object": "s3:GetObject",
    "head_bucket": "s3:ListBucket",
    "list_objects_v2": "s3:ListBucket",
    "delete_object": "s3:DeleteObject",
    "abort_multipart_upload": "s3:AbortMultipartUpload",
    "list_multipart_uploads": "s3:ListBucketMultipartUploads",
}
_DENIED = (
    "access denied to {key} in bucket {bucket} at {endpoint}: these credentials need {permission}. "
    "(Without s3:ListBucket, S3 answers the same for an object that does not exist)"
)
# The answers of S3 to a read without the object's key.
_KEYLESS = {"AccessDenied", "403", "InvalidRequest", "InvalidArgument"}
_KEY = (
    "; or the object is encrypted with a key that this request lacks: `store.encryption` needs the customer key that "
    "wrote it (sse-c), or these credentials need kms:Decrypt on its key (sse-kms)"
)
_EXPIRED = (
    "the credentials for {endpoint} have expired: renew aws_session_token, "
    "or use role_arn or an instance role, which renew themselves"
)
_REFUSED = (
    "{endpoint} refuses the credentials ({code}): correct login and password of the Airflow connection that store.aws "
    "names; or, if store.aws is a mapping, its aws_access_key_id and aws_secret_access_key"
)
_REGION = "bucket {bucket} is in another region than {endpoint} ({code}): correct region_name or endpoint_url"
_NO_BUCKET = "bucket {bucket} does not exist at {endpoint}; create it or correct store.url"
_CLOCK = "the clocks of this machine and of {endpoint} differ by too much ({code}): synchronise this machine's with NTP"
_UNSUPPORTED = (
    "{endpoint} does not support {operation} as asked ({code}): "
    "the archiver needs conditional writes (If-None-Match) and multipart uploads"
)
_PERMANENT = {
    "NoSuchBucket": _NO_BUCKET,
    # A missing bucket: callers handle the 404 of an object.
    "404": _NO_BUCKET,
    "AccessDenied": _DENIED,
    "403": _DENIED,
    "ExpiredToken": _EXPIRED,
    "ExpiredTokenException": _EXPIRED,
    "TokenRefreshRequired": _EXPIRED,
    "InvalidAccessKeyId": _REFUSED,
    "SignatureDoesNotMatch": _REFUSED,
    "InvalidToken": _REFUSED,
    "InvalidClientTokenId": _REFUSED,
    "RequestTimeTooSkewed": _CLOCK,
    "PermanentRedirect": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "301": _REGION,
    "NotImplemented": _UNSUPPORTED,
    "501": _UNSUPPORTED,
    "EntityTooSmall": "{key} cannot be completed: a part other than the last is smaller than 5 MiB",
    "InvalidPart": "{key} cannot be completed: its upload does not have these parts",
    "InvalidPartOrder": "{key} cannot be completed: its parts are not in ascending order",
    "KeyTooLongError": "the key is too long for {endpoint} (S3 allows 1024 bytes): {key}",
    "InvalidObjectState": "{key} is in a storage class from which it must be restored before it can be read: restore "
    "it (`aws s3api restore-object`). No lifecycle rule of bucket {bucket} may move `_ledger/`",
    # An answer to HEAD has no body, so no code.
    "400": "{endpoint} refuses {operation} of {key} without a reason: often the credentials have expired, or the "
    "object is encrypted with another customer key (SSE-C)",
}


class Bucket(NamedTuple):
    """The bucket and endpoint of a store, for messages."""

    name: str
    endpoint: str


def code_of(error: BaseException) -> str:
    """S3's error code; empty if the error is not from S3."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def may_not_know(error: BaseException, operation: str) -> bool:
    """Return True if the reason may be a header that the store does not know."""
    # An answer to HEAD has only the status as its code.
    return code_of(error) in ({"400", "501"} if operation.startswith("head") else _UNKNOWN)


def explain(error: BaseException, bucket: Bucket, operation: str, key: str) -> ArchiverError:
    """The failure as an ArchiverError.

    :param operation: the name of boto3's method.
    :param key: relative to the store's URL; may be a prefix.
    """
    key = foreign(key, _KEY_LENGTH)
    if isinstance(error, ClientError):
        return _answered(error, bucket, operation, key)
    what = f"{operation} of {key or 'all keys'} in bucket {bucket.name}"
    if isinstance(error, SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return PermanentError(
            f"the certificate of {bucket.endpoint} is not trusted: "
            "set verify to a bundle with the certificate authority that signed it"
        )
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return PermanentError(
            f"no credentials for {bucket.endpoint}: give them to the Airflow connection that store.aws names "
            "(login and password), or run where an instance role provides them"
        )
    if isinstance(error, ParamValidationError):
        return PermanentError(f"{what} is not a valid request: S3 has no such bucket or key name")
    if isinstance(error, _CONNECTION_FAILURES):
        return TransientError(f"{what}: {_reason(error)} at {bucket.endpoint}")
    # All other errors of botocore are errors of its setup: a credentials file or process, …
    return PermanentError(f"{what} at {bucket.endpoint} was not sent: {kind_in_words(error)}")


def _answered(error: ClientError, bucket: Bucket, operation: str, key: str) -> ArchiverError:
    """An error that the store or the token service answered."""
    response: dict[str, Any] = error.response
    metadata = response.get("ResponseMetadata", {})
    code, status = code_of(error), metadata.get("HTTPStatusCode", 0)
    request = f", request {foreign(str(metadata['RequestId']))}" if metadata.get("RequestId") else ""
    shown = foreign(code)
    message = (
        f"{operation} of {key or 'all keys'} in bucket {bucket.name}: "
        f"HTTP {status} {shown} from {bucket.endpoint}{request}"
    )
    key_of_object = _KEY if operation in ("get_object", "head_object") and code in _KEYLESS else ""
    if error.operation_name.startswith("AssumeRole"):
        # The answer is from the token service.
        message = (
            f"{error.operation_name} for bucket {bucket.name}: HTTP {status} {shown} from the token service{request}; "
            "check that these credentials may assume role_arn, and that external_id is the one in its trust policy"
        )
    elif code == str(status) and not operation.startswith("head") and _is_xml(metadata):
        # S3's code is in the XML. If the XML is truncated, botocore uses the status as the code.
        return TransientError(f"{message}, and the rest of the answer was cut off")
    elif code in _PERMANENT:
        message = _PERMANENT[code].format(
            bucket=bucket.name,
            endpoint=bucket.endpoint,
            key=key or "all keys",
            code=code,
            operation=operation,
            permission=_PERMISSIONS.get(operation, "s3:PutObject"),
        )
        kind = ColdObjectError if code == "InvalidObjectState" else PermanentError
        return kind(message + key_of_object + (f" ({request[2:]})" if request else ""))
    # botocore sets the status of an error in the body of a 200 to 500.
    if code in _TRANSIENT_CODES or status in (408, 429) or status >= 500:
        return TransientError(message)
    return PermanentError(message + key_of_object)


def _is_xml(metadata: dict[str, Any]) -> bool:
    return "xml" in metadata.get("HTTPHeaders", {}).get("content-type", "")


def _reason(error: BaseException) -> str:
    """The network failure, without botocore's text."""
    if isinstance(error, ConnectTimeoutError):
        return "no connection in time"
    if isinstance(error, ReadTimeoutError):
        return "no answer in time"
    if isinstance(error, EndpointConnectionError):
        # `error` is from urllib3; its cause is from the system: connection refused, name or service not known.
        cause = getattr(error, "kwargs", {}).get("error")
        system = getattr(cause, "__cause__", None)
        return f"no connection ({getattr(system, 'strerror', None) or 'check endpoint_url'})"
    if isinstance(error, IncompleteReadError | ResponseStreamingError | ResponseParserError):
        return "the answer was cut off"
    if isinstance(error, FlexibleChecksumError):
        return "the answer does not match its checksum"
    if isinstance(error, CredentialRetrievalError):
        return f"no credentials from {foreign(str(getattr(error, 'kwargs', {}).get('provider', 'their provider')))}"
    return f"the connection broke ({kind_in_words(error)})"

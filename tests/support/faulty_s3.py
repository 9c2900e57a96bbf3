"""An S3 server in a thread, on a real socket, with the faults that a test chooses.

It stores objects in the memory twin, and checks Content-MD5 and CRC-32s like S3.
"""

from __future__ import annotations

import base64
import hashlib
import socket
import struct
import threading
import uuid
import zlib
from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.store import PendingUpload, Stat, UploadedPart
from kafka_archiver.store.memory import MemoryStore

BUCKET = "archive"
_ENCRYPTION = ("x-amz-server-side-encryption", "x-amz-server-side-encryption-customer-algorithm")
Checksums = Literal["known", "of parts", "ignored", "refused"]


@dataclass(frozen=True)
class Fault:
    """The fault of one request.

    refuse: an error, and the request is not carried out · torn: half of an error ·
    reset: the connection breaks before the request is carried out · lose: … after it is carried out ·
    stall: no answer · cut: half of the answer's body · garble: one bit of the answer's body changes ·
    damage: one bit of the request's body changes · swallow: the same, and the server does not check checksums ·
    late: the error is in the body of a 200 · blank: a 200 without ETag and body · odd: an ETag that is not an MD5
    """

    kind: Literal[
        "refuse", "torn", "reset", "lose", "stall", "cut", "garble", "damage", "swallow", "late", "blank", "odd"
    ]
    status: int = 500
    code: str = "InternalError"
    message: str = "told to"
    headers: dict[str, str] = field(default_factory=dict)


def refuse(status: int, code: str, message: str = "told to") -> Fault:
    return Fault("refuse", status, code, message)


class FaultyS3:
    """:ivar requests: the requested operations, by boto3's method names; "create", "replace": a conditional put.
    :ivar ignores_conditions: ignore If-None-Match and If-Match, like old servers.
    :ivar checksums: S3's additional checksums: supported ("known"), only for parts ("of parts"), ignored, or refused.
    :ivar encrypted: the answers say that KMS encrypts objects and parts.
    :ivar confirms: the answers to writes repeat the encryption that the request asks for.
    """

    checksums: Checksums

    def __init__(self) -> None:
        self.store = MemoryStore(uuid.uuid4().hex)
        self.of_parts: set[str] = set()
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.ignores_conditions = False
        self.checksums = "known"
        self.encrypted = False
        self.confirms = True
        self.encryption: dict[str, str] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def reset(self) -> None:
        """Restore the initial state, with the same address."""
        self.store = MemoryStore(uuid.uuid4().hex)
        for record in (self.requests, self.headers, self.bodies, self.faults):
            record.clear()
        self.ignores_conditions = False
        self.checksums = "known"
        self.encrypted = False
        self.confirms = True
        self.encryption = {}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fail(self, operation: str, *faults: Fault) -> None:
        """Add faults for the next requests of this operation, one each."""
        self.faults[operation].extend(faults)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(_Handler):
            server_state = owner

        return Handler


class _Handler(BaseHTTPRequestHandler):
    server_state: FaultyS3
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do(self) -> None:
        state = self.server_state
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = unquote(url.path).removeprefix(f"/{BUCKET}").removeprefix("/")
        conditions = {"create": "If-None-Match", "replace": "If-Match"}
        condition = next((name for name, header in conditions.items() if header in self.headers), "put_object")
        operation = _operation(self.command, key, query, "put_object" if state.ignores_conditions else condition, body)
        state.requests.append(operation)
        state.headers.append(dict(self.headers))
        state.bodies.append(body)
        fault = state.faults[operation].popleft() if state.faults[operation] else None
        kind = fault.kind if fault else ""
        if kind == "stall":
            # Until the client gives up.
            self.connection.recv(1)
            self.close_connection = True
            return
        if kind == "reset":
            self._reset()
            return
        if fault and kind == "refuse":
            if operation == "AssumeRole":
                error = _error_xml(fault.code, fault.message).split(b"\n", 1)[1]
                self._answer(fault.status, {}, b"<ErrorResponse>" + error + b"</ErrorResponse>")
            else:
                self._error(fault.status, fault.code, fault.message)
            return
        if fault and kind == "torn":
            self._answer(fault.status, {"Content-Type": "application/xml"}, _error_xml(fault.code, "told to"), cut=True)
            return
        if kind in ("damage", "swallow"):
            body = _flip(body)
        asked = [name for name in self.headers if name.lower().startswith("x-amz-checksum")]
        if asked and state.checksums == "refused":
            self._error(400, "InvalidArgument", f"Unsupported header '{asked[0]}' received for this API call.")
            return
        if query.get("uploadId") in state.of_parts and operation == "upload_part":
            self._error(400, "InvalidRequest", "The upload was created with a checksum algorithm: each part needs one.")
            return
        if kind != "swallow" and not self._is_sound(operation, body):
            self._error(400, "BadDigest", "The checksum you specified did not match what we received.")
            return
        try:
            headers, content = self._carry_out(operation, key, query, body)
            headers |= self._checksums(operation, key, body)
            headers |= {"x-amz-server-side-encryption": "aws:kms"} if state.encrypted else {}
            headers |= self._encryption(operation, query, state)
        except LookupError as error:
            self._error(404, str(error.args[0]), "not there")
            return
        except FileExistsError:
            self._error(412, "PreconditionFailed", "there already")
            return
        except TransientError as damage:
            self._error(400, "BadDigest", str(damage))
            return
        if kind == "lose":
            self._reset()
        elif fault and kind == "late":
            self._answer(200, {}, _error_xml(fault.code, fault.message))
        elif kind == "blank":
            self._answer(200, {}, b"")
        elif kind == "cut":
            self._answer(200, headers, content, cut=True)
        elif kind == "garble":
            self._answer(200, headers, _flip(content))
        elif fault and kind == "odd":
            self._answer(200, {**headers, "ETag": '"0123456789abcdef0123456789abcdef"', **fault.headers}, content)
        else:
            self._answer(200, headers, content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do  # noqa: N815

    def _is_sound(self, operation: str, body: bytes) -> bool:
        """Return True if the body has the checksums in its headers."""
        if (sent := self.headers.get("Content-MD5")) and base64.b64decode(sent) != hashlib.md5(body).digest():
            return False
        sent = self.headers.get("x-amz-checksum-crc32") if self.server_state.checksums == "known" else None
        return operation == "complete_multipart_upload" or not sent or sent == _crc(body)

    def _checksums(self, operation: str, key: str, body: bytes) -> dict[str, str]:
        """The checksum headers of an answer."""
        state = self.server_state
        if operation == "create_multipart_upload" and state.checksums in ("known", "of parts"):
            echoed = ("x-amz-checksum-algorithm", *(["x-amz-checksum-type"] if state.checksums == "known" else []))
            return {name: self.headers[name] for name in echoed if name in self.headers}
        if state.checksums != "known":
            return {}
        if "x-amz-checksum-crc32" in self.headers:
            return {"x-amz-checksum-crc32": _crc(body)}
        if "x-amz-checksum-mode" in self.headers and (kept := self._kept(key)):
            return {"x-amz-checksum-crc32": kept}
        return {}

    def _encryption(self, operation: str, query: dict[str, str], state: FaultyS3) -> dict[str, str]:
        """The headers that confirm the encryption. That of a part is asked for when its upload begins."""
        asked = {name: self.headers[name] for name in _ENCRYPTION if name in self.headers}
        if operation == "create_multipart_upload":
            state.encryption = asked
        elif operation == "upload_part":
            asked = state.encryption
        return asked if state.confirms else {}

    def _stat(self, key: str) -> Stat:
        if (stat := self.server_state.store.head(key)) is None:
            raise LookupError("NoSuchKey")
        return stat

    def _kept(self, key: str) -> str:
        """The checksum of an object; empty if it has none."""
        return base64.b64encode(bytes.fromhex((self._stat(key).checksum or "")[6:])).decode()

    def _carry_out(self, operation: str, key: str, query: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
        """Carry out the request. Returns the answer's headers and body."""
        store = self.server_state.store
        match operation:
            case "AssumeRole":
                return {}, _role_xml(len([r for r in self.server_state.requests if r == "AssumeRole"]))
            case "put_object":
                return {"ETag": f'"{store.put(key, body)}"'}, b""
            case "create":
                if not store.create(key, body):
                    raise FileExistsError
                return {"ETag": f'"{self._stat(key).etag}"'}, b""
            case "replace":
                if not store.replace(key, body, self.headers["If-Match"].strip('"')):
                    raise FileExistsError
                return {"ETag": f'"{self._stat(key).etag}"'}, b""
            case "get_object" | "head_object":
                stat, data = self._stat(key), store.get(key) or b""
                modified = stat.modified.strftime("%a, %d %b %Y %H:%M:%S GMT")
                return {"ETag": f'"{stat.etag}"', "Last-Modified": modified}, data
            case "delete_object":
                store.delete(key)
                return {}, b""
            case "head_bucket":
                return {}, b""
            case "list_objects_v2":
                return {}, _list_xml(store, query)
            case "list_multipart_uploads":
                return {}, _uploads_xml(store, query)
            case "create_multipart_upload":
                upload_id = store.start_upload(key).upload_id
                if "x-amz-checksum-algorithm" in self.headers and self.server_state.checksums == "of parts":
                    self.server_state.of_parts.add(upload_id)
                return {}, _xml("InitiateMultipartUploadResult", UploadId=upload_id)
            case "upload_part":
                try:
                    upload = PendingUpload(key, query["uploadId"])
                    part = store.upload_part(upload, int(query["partNumber"]), body, zlib.crc32(body))
                except TransientError:
                    raise LookupError("NoSuchUpload") from None
                return {"ETag": f'"{part.etag}"'}, b""
            case "complete_multipart_upload":
                return {}, self._complete(key, query["uploadId"], body)
            case "abort_multipart_upload":
                store.abort_upload(key, query["uploadId"])
                return {}, b""
        raise AssertionError(f"{self.command} {self.path} is no request the store makes")

    def _complete(self, key: str, upload_id: str, body: bytes) -> bytes:
        store = self.server_state.store
        if upload_id not in {open_id for _, open_id, _ in store.list_uploads("")}:
            # The twin allows a second completion; Amazon S3 does not.
            raise LookupError("NoSuchUpload")
        etags = [e.text.strip('"') for e in ElementTree.fromstring(body).iter() if e.tag.endswith("ETag") and e.text]
        sent = self.headers.get("x-amz-checksum-crc32", "")
        # The parts' checksums are unknown here: one part gets the checksum of the whole, the others 0.
        whole = int.from_bytes(base64.b64decode(sent))
        parts = tuple(UploadedPart(etag, 0 if number else whole, 0) for number, etag in enumerate(etags))
        try:
            etag = store.complete_upload(PendingUpload(key, upload_id, parts, checked=bool(sent)))
        except PermanentError:
            raise LookupError("InvalidPart") from None
        echo = {"ChecksumCRC32": self._kept(key), "ChecksumType": "FULL_OBJECT"} if sent else {}
        return _xml("CompleteMultipartUploadResult", ETag=f'"{etag}"', **echo)

    def _error(self, status: int, code: str, message: str) -> None:
        self._answer(status, {"x-amz-request-id": "REQ1"}, _error_xml(code, message))

    def _answer(self, status: int, headers: dict[str, str], body: bytes, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        if cut:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.rfile, self.wfile = _Closed(), _Closed()  # type: ignore[assignment]
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Closed:
    """A file that the base class can flush and close after a reset."""

    closed = True

    def flush(self) -> None: ...

    def close(self) -> None: ...


def _operation(method: str, key: str, query: dict[str, str], put: str, body: bytes) -> str:
    if b"Action=AssumeRole" in body:
        return "AssumeRole"
    if "uploadId" in query:
        return {
            "PUT": "upload_part",
            "POST": "complete_multipart_upload",
            "DELETE": "abort_multipart_upload",
        }[method]
    if "uploads" in query:
        return "create_multipart_upload" if method == "POST" else "list_multipart_uploads"
    if "list-type" in query:
        return "list_objects_v2"
    if method == "PUT":
        return put
    return f"{method.lower()}_{'object' if key else 'bucket'}"


def _crc(data: bytes) -> str:
    return base64.b64encode(zlib.crc32(data).to_bytes(4)).decode()


def _flip(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def _xml(root: str, **fields: str) -> bytes:
    inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields.items())
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{root}>{inner}</{root}>'.encode()


def _error_xml(code: str, message: str) -> bytes:
    return _xml("Error", Code=code, Message=message, RequestId="REQ1")


def _list_xml(store: MemoryStore, query: dict[str, str]) -> bytes:
    """Pages of two keys."""
    stats = list(store.list(query.get("prefix", "")))
    start = int(query.get("continuation-token", 0))
    items = "".join(
        f"<Contents><Key>{s.key}</Key><Size>{s.size}</Size><ETag>{s.etag}</ETag>"
        f"<LastModified>{s.modified.isoformat()}</LastModified></Contents>"
        for s in stats[start : start + 2]
    )
    more = start + 2 < len(stats)
    token = f"<NextContinuationToken>{start + 2}</NextContinuationToken>" if more else ""
    truncated = str(more).lower()
    return f"<ListBucketResult>{items}<IsTruncated>{truncated}</IsTruncated>{token}</ListBucketResult>".encode()


def _uploads_xml(store: MemoryStore, query: dict[str, str]) -> bytes:
    items = "".join(
        f"<Upload><Key>{key}</Key><UploadId>{upload_id}</UploadId><Initiated>{began.isoformat()}</Initiated></Upload>"
        for key, upload_id, began in store.list_uploads(query.get("prefix", ""))
    )
    return f"<ListMultipartUploadsResult>{items}<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>".encode()


def _role_xml(number: int) -> bytes:
    """Credentials; the first ones live for one minute, so botocore renews them at once."""
    expiry = datetime.now(UTC) + timedelta(minutes=1 if number == 1 else 60)
    return (
        "<AssumeRoleResponse><AssumeRoleResult><Credentials>"
        f"<AccessKeyId>ROLEKEY{number}</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey>"
        f"<SessionToken>role-token-{number}</SessionToken><Expiration>{expiry:%Y-%m-%dT%H:%M:%SZ}</Expiration>"
        "</Credentials></AssumeRoleResult></AssumeRoleResponse>"
    ).encode()

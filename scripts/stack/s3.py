"""A real S3 server: SeaweedFS, with all components in one process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from scripts.stack.errors import StackError
from scripts.stack.paths import BIN
from scripts.stack.ports import HOST
from scripts.stack.process import Service

# A list of the sockets that the server makes below /tmp, for any flags. A killed server leaves them there.
SOCKETS = "sockets"


@dataclass(frozen=True)
class S3Ports:
    BASE: ClassVar[int] = 18_100
    clients: int
    clients_grpc: int
    master: int
    master_grpc: int
    volume: int
    volume_grpc: int
    filer: int
    filer_grpc: int
    admin: int
    admin_grpc: int


@dataclass(frozen=True)
class Credentials:
    access_key: str
    secret_key: str


class S3(Service):
    title = "the S3 server"
    # The server flushes within two seconds, then waits ten for idle connections.
    grace = 5
    bucket = "archive"
    region = "us-east-1"
    # Fixed, so that env.sh and connections stay valid. The server listens on this machine only. Airflow hides these
    # words in logs and messages, so they are no part of other names.
    owner = Credentials("local-s3-key", "local-s3-secret")
    reader = Credentials("reader", "reader-local-secret")

    def __init__(self, directory: Path, ports: S3Ports) -> None:
        self.ports = ports
        self.endpoint_url = f"http://{HOST}:{ports.clients}"
        super().__init__(directory, self.endpoint_url)

    def options(self, credentials: Credentials = owner) -> dict[str, str]:
        """The options that a client needs, by boto3's names."""
        return {
            "endpoint_url": self.endpoint_url,
            "region_name": self.region,
            "aws_access_key_id": credentials.access_key,
            "aws_secret_access_key": credentials.secret_key,
        }

    def client(self, credentials: Credentials = owner) -> Any:
        """A boto3 client of this server."""
        config = Config(connect_timeout=2, read_timeout=10, retries={"total_max_attempts": 1})
        return boto3.client("s3", config=config, **self.options(credentials))

    def launch(self) -> None:
        (self.directory / "data").mkdir(parents=True, exist_ok=True)
        identities = self.directory / "identities.json"
        identities.write_text(json.dumps(self._identities(), indent=2))
        (self.directory / SOCKETS).write_text("".join(f"{path}\n" for path in self._sockets()))
        self._run([BIN / "weed", *self._arguments()], os.environ)

    def wait(self) -> None:
        owner = self.client()
        self._wait_until(lambda: self._refusal(lambda: self._round_trip(owner)), seconds=60)
        stranger = self.client(Credentials(self.owner.access_key, "not-the-secret"))
        if self._refusal(lambda: self._round_trip(stranger)) is None:
            raise StackError(f"the S3 server at {self.endpoint_url} accepts a wrong secret key: do not use it")

    def stop(self, grace: float | None = None) -> None:
        super().stop(grace)
        remove_sockets(self.directory)

    def _round_trip(self, client: Any) -> None:
        key, body = "_stack/ready", b"ready"
        client.put_object(Bucket=self.bucket, Key=key, Body=body)
        read = client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        if read != body:
            raise StackError(f"the S3 server at {self.endpoint_url} returned {read!r} for {body!r}")
        client.delete_object(Bucket=self.bucket, Key=key)

    @staticmethod
    def _refusal(attempt: Callable[[], None]) -> str | None:
        try:
            attempt()
        except (BotoCoreError, ClientError) as error:
            return str(error)
        return None

    def _sockets(self) -> Iterator[str]:
        for purpose, number in self.ports_needed().items():
            if purpose.endswith("_grpc"):
                part = "s3" if purpose == "clients_grpc" else purpose.removesuffix("_grpc")
                yield f"/tmp/seaweedfs-{part}-grpc-{number}.sock"

    def _identities(self) -> dict[str, Any]:
        def identity(credentials: Credentials, actions: list[str]) -> dict[str, Any]:
            keys = {"accessKey": credentials.access_key, "secretKey": credentials.secret_key}
            return {"name": credentials.access_key, "credentials": [keys], "actions": actions}

        owner = identity(self.owner, ["Admin", "Read", "Write", "List", "Tagging"])
        return {"identities": [owner, identity(self.reader, ["Read", "List"])]}

    def _arguments(self) -> list[str]:
        ports = self.ports
        return [
            "-logtostderr=true",
            "mini",
            f"-dir={self.directory / 'data'}",
            f"-ip={HOST}",
            f"-ip.bind={HOST}",
            f"-bucket={self.bucket}",
            f"-s3.config={self.directory / 'identities.json'}",
            f"-s3.port={ports.clients}",
            f"-s3.port.grpc={ports.clients_grpc}",
            f"-master.port={ports.master}",
            f"-master.port.grpc={ports.master_grpc}",
            f"-volume.port={ports.volume}",
            f"-volume.port.grpc={ports.volume_grpc}",
            f"-filer.port={ports.filer}",
            f"-filer.port.grpc={ports.filer_grpc}",
            # The maintenance worker expects its admin 10,000 ports above the first of these, and finds none: it has
            # nothing to do here, and a stack with PORT_OFFSET=10000 needs those ports.
            f"-admin.port={ports.admin}",
            f"-admin.port.grpc={ports.admin_grpc}",
            # A fixed name in the stored topology: the default depends on the port, so on PORT_OFFSET.
            "-volume.id=local",
            # Relative paths: an absolute path may be too long for a socket, and the default is below /tmp.
            "-s3.localSocket=s3.sock",
            "-filer.localSocket=filer.sock",
            # A write to a missing bucket must fail, as with Amazon S3.
            "-s3.autoCreateBucket=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-webdav=false",
            "-admin.ui=false",
            "-master.telemetry=false",
        ]


def remove_sockets(directory: Path) -> None:
    """Remove the sockets that the ended server of this directory has left."""
    listed = directory / SOCKETS
    for path in listed.read_text().splitlines() if listed.exists() else []:
        Path(path).unlink(missing_ok=True)

"""Azurite, Microsoft's emulator of Azure Blob Storage, from npm. Installed below .local by the first test that asks."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from azure.core.exceptions import AzureError
from azure.storage.blob import ContainerClient

from scripts.stack.paths import LOCAL
from scripts.stack.ports import HOST
from scripts.stack.process import Service

VERSION = "3.37.0"
HOME = LOCAL / "azurite"
PROGRAM = HOME / "node_modules/azurite/dist/src/blob/main.js"
ACCOUNT, KEY = "archiver", b64encode(b"local-azure-key." * 4).decode()


def require_azurite() -> None:
    """Install it. Skips the test where there is no npm, or where npm cannot get it."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("Azurite needs node and npm")
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not PROGRAM.exists():
            command = ["npm", "install", "--no-audit", "--no-fund", "--silent", f"azurite@{VERSION}"]
            try:
                subprocess.run(command, cwd=HOME, check=True, timeout=120)
            except subprocess.SubprocessError as error:
                pytest.skip(f"npm does not install Azurite: {error}")


@dataclass(frozen=True)
class AzuritePorts:
    BASE: ClassVar[int] = 18_300
    clients: int


class Azurite(Service):
    title = "Azurite"
    container = "archive"

    def __init__(self, directory: Path, ports: AzuritePorts) -> None:
        self.ports = ports
        self.account_url = f"http://{HOST}:{ports.clients}/{ACCOUNT}"
        super().__init__(directory, self.account_url)

    def options(self) -> dict[str, str]:
        """The options of a store."""
        return {"account_url": self.account_url, "account_name": ACCOUNT, "account_key": KEY}

    def client(self) -> ContainerClient:
        credential: Any = {"account_name": ACCOUNT, "account_key": KEY}
        return ContainerClient(self.account_url, self.container, credential=credential, retry_total=0)

    def launch(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        arguments = ["--blobHost", HOST, "--blobPort", str(self.ports.clients), "--inMemoryPersistence", "--silent"]
        accounts = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
        self._run(["node", PROGRAM, *arguments, "--skipApiVersionCheck", "--disableTelemetry"], os.environ | accounts)

    def wait(self) -> None:
        self._wait_until(self._refusal, seconds=60)

    def _refusal(self) -> str | None:
        try:
            client = self.client()
            if not client.exists():
                client.create_container()
        except AzureError as error:
            return str(error)
        return None

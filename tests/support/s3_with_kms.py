"""The S3 server with a key management service. Its keys are in memory: a server that stops has lost them."""

from typing import Any

from scripts.stack.s3 import S3

KMS_KEY = "alias/seaweedfs-default"


class S3WithKms(S3):
    def _identities(self) -> dict[str, Any]:
        kms = {"default_provider": "local", "providers": {"local": {"type": "local"}}}
        return {**super()._identities(), "kms": kms}

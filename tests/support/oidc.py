"""An identity provider: gives signed tokens to a client with the right secret, and the public key for them."""

import base64
import json
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.http_servers import Handler, serving

AUDIENCE, KEY_ID = "kafka", "key-1"


@dataclass
class IdentityProvider:
    """OAuth 2.0 client credentials over HTTPS; RS256 tokens for `AUDIENCE`.

    :param certificate: a PEM file with key and certificate.
    """

    certificate: Path
    client: str
    secret: str
    asked: list[dict[str, str]] = field(default_factory=list)
    """The form of each token request."""

    @contextmanager
    def serving(self) -> Iterator["IdentityProvider"]:
        with serving(type("Handler", (_Handler,), {"provider": self}), self.certificate) as self.url:
            yield self

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def keys(self) -> dict[str, Any]:
        """The public keys for the tokens (a JWKS)."""
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return {"keys": [{**public, "kid": KEY_ID, "alg": "RS256", "use": "sig"}]}

    def answer(self, authorization: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """The status and the document for a token request."""
        known = base64.b64encode(f"{self.client}:{self.secret}".encode()).decode()
        if authorization != f"Basic {known}":
            return 401, {"error": "invalid_client", "error_description": "no such client, or another secret"}
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        moment = int(time.time())
        claims = {"sub": self.client, "aud": AUDIENCE, "iat": moment, "exp": moment + 300}
        if "scope" in form:
            claims["scope"] = form["scope"]
        token = jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": KEY_ID})
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 300}


class _Handler(Handler):
    provider: IdentityProvider

    def do_GET(self) -> None:  # noqa: N802
        self._send(200, self.provider.keys())

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = dict(urllib.parse.parse_qsl(body))
        self.provider.asked.append(form)
        self._send(*self.provider.answer(self.headers.get("Authorization", ""), form))

    def _send(self, status: int, document: dict[str, Any]) -> None:
        self.answer(status, json.dumps(document).encode())

"""A provider of OpenID Connect on loopback: discovery, authorisation code, token, keys. Whoever
asks is logged in at once."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "cotlab", "of-the-client"


class Provider:
    """``person`` is who logs in next: the claims beside those that the protocol needs."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self.person: Mapping[str, Any] = {"sub": "7", "email": "ann@x.org", "email_verified": True}
        self.nonces: dict[str, str | None] = {}
        self.issuer = ""

    def discovery(self) -> dict[str, Any]:
        here = self.issuer
        return {
            "issuer": here,
            "authorization_endpoint": f"{here}/authorize",
            "token_endpoint": f"{here}/token",
            "jwks_uri": f"{here}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "scopes_supported": ["openid", "profile", "email"],
        }

    def token(self, code: str) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 600, **self.person}
        if (nonce := self.nonces.pop(code)) is not None:
            claims["nonce"] = nonce
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)
        return {
            "access_token": "unused",
            "token_type": "Bearer",
            "expires_in": 600,
            "id_token": signed,
        }


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider that serves until the block ends."""
    told = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if parts.path == "/authorize":
                code = f"code-{len(told.nonces)}-{time.monotonic_ns()}"
                told.nonces[code] = asked.get("nonce")
                self.send_response(302)
                self.send_header(
                    "Location",
                    f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}",
                )
                self.end_headers()
            elif parts.path == "/keys":
                self._json({"keys": [told.key.as_dict(private=False)]})
            elif parts.path == "/.well-known/openid-configuration":
                self._json(told.discovery())
            else:
                self.send_error(404)

        def do_POST(self) -> None:
            body = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
            basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
            ours = self.headers.get("Authorization") == f"Basic {basic}" or body.get(
                "client_secret"
            ) == [CLIENT_SECRET]
            if not ours or body["code"][0] not in told.nonces:
                self.send_error(401)
                return
            self._json(told.token(body["code"][0]))

        def _json(self, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

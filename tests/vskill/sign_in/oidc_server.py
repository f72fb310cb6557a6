"""A small OpenID Connect provider on this machine: real HTTP, codes that count once, PKCE and client secrets."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt

CLIENT: Final = "vskill"
SECRET: Final = "a secret of the tests, and long enough for a key"


class Provider:
    """The people of the provider and the codes that it gave; ``audience`` and ``issuer`` are what it claims.

    ``userinfo`` is what it says of a person apart from the token, by default the same.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.person: dict[str, Any] = {"sub": "7", "preferred_username": "grace", "email": "root@corp.example"}
        self.userinfo: dict[str, Any] | None = None
        self.audience = CLIENT
        self.issuer = address
        self.codes: dict[str, dict[str, str]] = {}
        self.refused = 0

    def sign_in(self, address: str) -> str:
        """Return where a browser is led after its person signed in at ``address``, that of an authorization request."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        code = secrets.token_urlsafe(8)
        self.codes[code] = asked
        back = urlsplit(asked["redirect_uri"])
        return f"{back.path}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, sent: dict[str, str]) -> dict[str, Any] | None:
        """Return the tokens for a code, once, or ``None``."""
        asked = self.codes.pop(sent.get("code", ""), None)
        if asked is None or sent.get("redirect_uri") != asked["redirect_uri"] or sent.get("client_secret") != SECRET:
            return None
        digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code_challenge"]:
            return None
        claims = {"iss": self.issuer, "aud": self.audience, "exp": int(time.time()) + 60, **self.person}
        return {"access_token": "t", "token_type": "Bearer", "id_token": jwt.encode(claims, SECRET, "HS256")}


@contextmanager
def oidc_server(name: str = "127.0.0.1") -> Iterator[Provider]:
    """Run a provider on a free port of this machine, and yield it; ``name`` is that by which it is known."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = {
                "/userinfo": provider.userinfo or provider.person,
                "/.well-known/openid-configuration": configuration,
            }
            self.answer(known.get(self.path, {}), 200 if self.path in known else 404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            found = provider.token({name: values[0] for name, values in parse_qs(body).items()})
            provider.refused += found is None
            self.answer(found or {"error": "invalid_grant"}, 200 if found else 400)

        def answer(self, body: dict[str, Any], status: int = 200) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider = Provider(f"http://{name}:{server.server_port}")
        configuration = {
            "issuer": provider.address,
            "authorization_endpoint": f"{provider.address}/authorize",
            "token_endpoint": f"{provider.address}/token",
            "userinfo_endpoint": f"{provider.address}/userinfo",
            "jwks_uri": f"{provider.address}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()

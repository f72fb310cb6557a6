"""Speak https to addresses that were checked before; used in child processes, which resolve no name themselves."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Container, Generator, Iterable
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3

_TIMEOUT: Final = urllib3.Timeout(connect=10, read=20)
_BLOCK: Final = 64 * 1024
_TRIED_ADDRESSES: Final = 3
_AGAIN: Final = frozenset({408, 425, 429})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TROUBLE: Final = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError)


class Ended(Exception):
    """An exchange that gave nothing: its answer is ``end`` ("refused", "unreachable" or "redirect") and a text."""

    def __init__(self, end: str, text: str) -> None:
        super().__init__(text)
        self.end = end
        self.text = text


class PinnedClient:
    """Sends requests to the addresses that they name, and to no other.

    ``ca_file`` is a PEM file of authorities that are trusted beside the system's. With a ``proxy`` (its ``url``, and
    ``login`` as ``user:password``) a request that names no address goes through a tunnel of that, to the host by name.
    """

    def __init__(self, ca_file: str | None, proxy: dict[str, Any] | None = None) -> None:
        self._context = ssl.create_default_context()
        if ca_file is not None:
            self._context.load_verify_locations(ca_file)
        self._pools: dict[tuple[str, int], urllib3.HTTPConnectionPool] = {}
        self._proxy = self._through(proxy) if proxy is not None else None

    def send(
        self, method: str, to: dict[str, Any], body: bytes | None = None, *, wanted: Container[int] = (200,)
    ) -> urllib3.BaseHTTPResponse:
        """Return the response to one request; raise ``Ended`` where its status is none of ``wanted``.

        ``method`` and ``body`` are those of the request. ``to`` has its ``url``, the ``host`` and ``port`` of it, the
        ``addresses`` to connect to, and more ``headers``.
        """
        parts = urlsplit(to["url"])
        host, port = str(to["host"]), int(to["port"])
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        name = f"[{host}]" if ":" in host else host
        headers = {
            "User-Agent": "vskill",
            "Accept-Encoding": "identity",
            **to["headers"],
            "Host": name if port == 443 else f"{name}:{port}",
        }
        response = self._answer(method, target, headers, body, (host, port), to["addresses"])
        if response.status in wanted:
            return response
        location = response.headers.get("Location", "")
        response.close()
        if response.status in _REDIRECTS:
            raise Ended("redirect", location[:8192])
        end = "unreachable" if response.status >= 500 or response.status in _AGAIN else "refused"
        raise Ended(end, f"its host answers with status {response.status}")

    def close(self) -> None:
        """Close the connections, so that the next request goes to the addresses that it names itself."""
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
        if self._proxy is not None:
            self._proxy.clear()

    def _answer(
        self,
        method: str,
        target: str,
        headers: dict[str, str],
        body: bytes | None,
        place: tuple[str, int],
        addresses: list[str],
    ) -> urllib3.BaseHTTPResponse:
        known = [self._pools[place]] if place in self._pools else []
        fresh: Iterable[urllib3.HTTPConnectionPool]
        if self._proxy is not None and not addresses:
            fresh = [self._proxy.connection_from_host(*place, scheme="https")]
        else:
            fresh = (self._pool(place, address) for address in addresses[:_TRIED_ADDRESSES])
        failure: Exception | None = None
        for pool in known or fresh:
            try:
                response = pool.urlopen(
                    method,
                    target,
                    body=body,
                    headers=headers,
                    redirect=False,
                    retries=False,
                    preload_content=False,
                    decode_content=False,
                )
            except _TROUBLE as error:
                failure = error
            else:
                self._pools[place] = pool
                return response
        raise Ended("unreachable", _said(failure))

    def _through(self, proxy: dict[str, Any]) -> urllib3.ProxyManager:
        headers = urllib3.make_headers(proxy_basic_auth=proxy["login"]) if proxy["login"] else None
        return urllib3.ProxyManager(
            proxy["url"],
            proxy_headers=headers,
            proxy_ssl_context=self._context,
            ssl_context=self._context,
            timeout=_TIMEOUT,
            maxsize=1,
        )

    def _pool(self, place: tuple[str, int], address: str) -> urllib3.HTTPSConnectionPool:
        return urllib3.HTTPSConnectionPool(
            f"[{address}]" if ":" in address else address,
            place[1],
            # The name is what the certificate has to be for.
            server_hostname=place[0],
            ssl_context=self._context,
            timeout=_TIMEOUT,
            maxsize=1,
        )


def _said(failure: Exception | None) -> str:
    if isinstance(failure, urllib3.exceptions.ProxyError):
        return "the proxy of this registry does not let it through"
    text = str(failure).lower()
    if "certificate" in text:
        return "the certificate of its host could not be verified"
    return "its host sends nothing" if "timed out" in text else "its host could not be reached"


def chunks_of(response: urllib3.BaseHTTPResponse) -> Generator[bytes]:
    """Yield the body of a response as it was sent, and close it; raise ``Ended`` where it breaks off."""
    try:
        yield from response.stream(_BLOCK, decode_content=False)
    except _TROUBLE:
        raise Ended("unreachable", "the transfer from its host broke off") from None
    finally:
        response.close()

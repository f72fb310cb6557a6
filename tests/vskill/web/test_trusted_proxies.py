"""The address of a client is what trusted proxies say, from the right, and never what a client claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from vskill.web.request_limits import Receive, Scope, Send
from vskill.web.trusted_proxies import Proxies, Seen, TrustProxies, trust_proxies_of_wsgi

CLIENT, FORGED, PROXY, OUTER = "203.0.113.7", "198.51.100.66", "10.0.0.1", "10.0.0.2"
NETWORKS = ["127.0.0.0/8", "::1", "10.0.0.0/24", "unix"]
X = Proxies(NETWORKS, "X-FORWARDED-FOR")
RFC = Proxies(NETWORKS, "FORWARDED")


def headers(**lines: str | list[str]) -> Callable[[str], Iterable[str]]:
    given = {name.replace("_", "-"): [line] if isinstance(line, str) else line for name, line in lines.items()}
    return lambda name: given.get(name, [])


@pytest.mark.parametrize(
    ("peer", "line", "client"),
    [
        pytest.param(PROXY, CLIENT, CLIENT, id="one proxy"),
        pytest.param(PROXY, f"{CLIENT}, {OUTER}", CLIENT, id="two proxies"),
        pytest.param(PROXY, [CLIENT, OUTER], CLIENT, id="two lines"),
        pytest.param(PROXY, f"{FORGED}, {CLIENT}", CLIENT, id="forged on the left"),
        pytest.param(PROXY, f"{OUTER}, {CLIENT}", CLIENT, id="a proxy forged on the left"),
        pytest.param(CLIENT, FORGED, CLIENT, id="forged by a client without a proxy"),
        pytest.param("10.0.1.1", FORGED, "10.0.1.1", id="forged by a neighbour of the proxies"),
        pytest.param("not an address", FORGED, "not an address", id="no address at all"),
        pytest.param(PROXY, "", PROXY, id="empty"),
        pytest.param(PROXY, [], PROXY, id="no header"),
        pytest.param(PROXY, f"{FORGED}, unknown", PROXY, id="a client that the proxy does not know"),
        pytest.param(PROXY, f"{FORGED}, <script>", PROXY, id="nonsense"),
        pytest.param(PROXY, f"{CLIENT}:4711", CLIENT, id="port"),
        pytest.param(PROXY, "[2001:db8::1]:4711", "2001:db8::1", id="ipv6 and port"),
        pytest.param(PROXY, "2001:db8::1", "2001:db8::1", id="ipv6"),
        pytest.param(PROXY, f"::ffff:{CLIENT}", CLIENT, id="mapped"),
        pytest.param("::ffff:10.0.0.1", CLIENT, CLIENT, id="mapped proxy"),
        pytest.param("", CLIENT, CLIENT, id="unix socket"),
        pytest.param("", [], "", id="unix socket without a header"),
        pytest.param(PROXY, f"{OUTER}, {PROXY}", OUTER, id="a proxy that asks for itself"),
        pytest.param(PROXY, ", ".join([CLIENT, *[OUTER] * 500]), OUTER, id="endless"),
    ],
)
def test_the_client_is_the_first_from_the_right_that_is_no_trusted_proxy(
    peer: str, line: str | list[str], client: str
) -> None:
    assert X.origin(peer, "http", headers(x_forwarded_for=line)).address == client


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        pytest.param(f"for={CLIENT}", Seen(CLIENT, "http"), id="plain"),
        pytest.param(f"for={CLIENT};proto=https;by={PROXY}", Seen(CLIENT, "https"), id="scheme"),
        pytest.param('For="[2001:db8::1]:4711"; Proto=HTTPS', Seen("2001:db8::1", "https"), id="quoted"),
        pytest.param(f"for={FORGED}, for={CLIENT}", Seen(CLIENT, "http"), id="forged on the left"),
        pytest.param(f"for={CLIENT};proto=https, for={OUTER}", Seen(CLIENT, "https"), id="two proxies"),
        pytest.param(f'for={FORGED}, for="_hidden"', Seen(PROXY, "http"), id="a made-up name"),
        pytest.param(f"for={FORGED}, for={CLIENT}, by=x", Seen(PROXY, "http"), id="no client"),
        pytest.param(f'for="{FORGED}', Seen(PROXY, "http"), id="an open quote"),
        pytest.param(f'for="a, for={FORGED}", for={CLIENT}', Seen(CLIENT, "http"), id="a comma in quotes"),
        pytest.param(f"for={FORGED}, ;;;", Seen(PROXY, "http"), id="nonsense"),
        pytest.param(f"for={CLIENT};proto=javascript", Seen(CLIENT, "http"), id="no scheme"),
        pytest.param("", Seen(PROXY, "http"), id="empty"),
    ],
)
def test_the_header_of_the_standard_is_read_the_same_way(line: str, seen: Seen) -> None:
    assert RFC.origin(PROXY, "http", headers(forwarded=line)) == seen


def test_only_the_header_that_the_proxies_write_is_read() -> None:
    both = headers(x_forwarded_for=CLIENT, forwarded=f"for={FORGED};proto=https")
    assert X.origin(PROXY, "http", both) == Seen(CLIENT, "http")
    both = headers(x_forwarded_for=FORGED, x_forwarded_proto="https", forwarded=f"for={CLIENT}")
    assert RFC.origin(PROXY, "http", both) == Seen(CLIENT, "http")


def test_the_scheme_is_believed_from_the_same_proxies_only() -> None:
    claims = headers(x_forwarded_proto="https", x_forwarded_for=FORGED)
    assert X.origin(PROXY, "http", claims).scheme == "https"
    assert X.origin(CLIENT, "http", claims) == Seen(CLIENT, "http")
    assert X.origin(PROXY, "https", headers(x_forwarded_proto="gopher")).scheme == "https"


def test_nobody_may_be_trusted() -> None:
    nobody = Proxies([], "X-FORWARDED-FOR")
    for peer in ("127.0.0.1", "::1", ""):
        assert nobody.origin(peer, "http", headers(x_forwarded_for=FORGED)) == Seen(peer, "http")


async def seen_by_the_application(scope: dict[str, Any]) -> Scope:
    seen: list[Scope] = []

    async def application(given: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(given)

    async def nothing(*_args: Any) -> Any:
        raise AssertionError("nothing is read or sent")

    await TrustProxies(application, X)(scope, nothing, nothing)
    return seen[0]


async def test_the_application_sees_the_client_and_its_scheme() -> None:
    lines = [(b"x-forwarded-for", CLIENT.encode()), (b"x-forwarded-proto", b"https")]
    scope = {"type": "http", "client": (PROXY, 4711), "scheme": "http", "headers": lines}
    seen = await seen_by_the_application(scope)
    assert (seen["client"], seen["scheme"]) == ((CLIENT, 0), "https")


async def test_a_unix_socket_has_the_client_that_its_proxy_names_or_none() -> None:
    scope: dict[str, Any] = {"type": "http", "client": None, "scheme": "http", "headers": []}
    assert (await seen_by_the_application({**scope}))["client"] is None
    named = {**scope, "headers": [(b"x-forwarded-for", CLIENT.encode())]}
    assert (await seen_by_the_application(named))["client"] == (CLIENT, 0)


async def test_who_comes_without_a_proxy_keeps_address_and_port() -> None:
    lines = [(b"x-forwarded-for", FORGED.encode())]
    scope = {"type": "http", "client": (CLIENT, 4711), "scheme": "http", "headers": lines}
    assert (await seen_by_the_application(scope))["client"] == (CLIENT, 4711)


async def test_what_is_no_request_is_passed_on() -> None:
    assert await seen_by_the_application({"type": "lifespan"}) == {"type": "lifespan"}


def test_wsgi_sees_the_same() -> None:
    seen: list[dict[str, Any]] = []
    answer = trust_proxies_of_wsgi(lambda environ, _start: seen.append(environ), X)
    environ = {"wsgi.url_scheme": "http", "HTTP_X_FORWARDED_FOR": CLIENT, "HTTP_X_FORWARDED_PROTO": "https"}
    for peer in (PROXY, FORGED):
        answer({**environ, "REMOTE_ADDR": peer}, None)
    told = [(one["REMOTE_ADDR"], one["wsgi.url_scheme"]) for one in seen]
    assert told == [(CLIENT, "https"), (FORGED, "http")]

"""Whom a request is counted for."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from vskill.rate_limits.clients import NO_ADDRESS, client_of


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("", NO_ADDRESS),
        ("unix:", NO_ADDRESS),
    ],
)
def test_a_client_is_its_address_and_ipv6_counts_by_network(address: str, client: str) -> None:
    assert client_of(RequestFactory().get("/", REMOTE_ADDR=address)) == client


def test_a_header_alone_makes_nobody_else_of_a_client() -> None:
    claims = {"X-Forwarded-For": "198.51.100.1", "Forwarded": "for=198.51.100.1", "X-Real-IP": "198.51.100.1"}
    assert client_of(RequestFactory().get("/", REMOTE_ADDR="203.0.113.7", headers=claims)) == "203.0.113.7"

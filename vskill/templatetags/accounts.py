"""The tags by which pages say who is signed in."""

from __future__ import annotations

from typing import Any

from django import template

from vskill.accounts.access import offers_sign_in
from vskill.accounts.visitor import name_of_visitor
from vskill.worker_context import get_worker_env

register = template.Library()


@register.simple_tag(takes_context=True)
def visitor_name(context: Any) -> str:
    """Return the name of whoever is signed in, or '' for a stranger; it asks no database."""
    return name_of_visitor(context.get("request"))


@register.inclusion_tag("accounts/_header_link.html", takes_context=True)
def account_link(context: Any) -> dict[str, Any]:
    """Return what leads to the account, or to the sign-in where that opens anything here; it asks no database."""
    env = get_worker_env()
    offered = env is not None and offers_sign_in(env)
    return {"offered": offered, "name": name_of_visitor(context.get("request")), "request": context.get("request")}

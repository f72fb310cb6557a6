"""What the pages about tokens share: who may use them, and that nobody keeps them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from vskill.accounts.visitor import visitor_of
from vskill.web.bearer_tokens import token_of


def signed_in_person(request: HttpRequest) -> Any:
    """Return who is signed in by a session, or ``None``: a token must not make another one, with more rights."""
    return visitor_of(request) if token_of(request) is None else None


def private_page(request: HttpRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """Return the page that ``template`` makes of ``context``, for no cache and no crawler, with this ``status``."""
    response = render(request, template, context, status=status)
    response["Cache-Control"] = "no-store"
    response["X-Robots-Tag"] = "noindex"
    return response

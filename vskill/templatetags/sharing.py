"""The tags by which a page tells other sites what a preview of it shows (Open Graph)."""

from __future__ import annotations

from typing import Any, Final

from django import template
from django.templatetags.static import static
from django.utils.safestring import SafeString, mark_safe

from vskill.worker_context import get_worker_env

register = template.Library()

_TOLD: Final = "vskill_told"


@register.simple_block_tag(takes_context=True)
def told(context: template.Context, content: SafeString, name: str) -> SafeString:
    """Return what the page has between the tags, and keep it by its ``name`` for ``preview``, which stands below."""
    _kept(context)[name] = content
    return content


@register.inclusion_tag("components/preview.html", takes_context=True)
def preview(context: template.Context) -> dict[str, str]:
    """Return what a preview of the page shows: its own title, description and address, and the picture of the product.

    A page asks for it in its block ``preview``, if it is for everybody: the address of another can bear a secret. It is
    empty outside an environment, as a preview needs an address.
    """
    env, request = get_worker_env(), context.get("request")
    if env is None or request is None:
        return {}
    base = env.public_url or f"{request.scheme}://{request.get_host()}"
    # The name of the product is told apart from the title.
    shown = {name: content.strip().removesuffix(" · vskill") for name, content in _kept(context).items()}
    return {
        "title": mark_safe(shown.get("title", "")),  # noqa: S308 - rendered, and so escaped already
        "description": mark_safe(shown.get("description", "")),  # noqa: S308 - likewise
        "url": base + request.get_full_path(),
        "image": base + static("vskill/preview.png"),
    }


def _kept(context: template.Context) -> dict[str, SafeString]:
    # It lasts while one page is drawn. The stubs do not know what it holds.
    held: Any = context.render_context
    kept: dict[str, SafeString] = held.setdefault(_TOLD, {})
    return kept

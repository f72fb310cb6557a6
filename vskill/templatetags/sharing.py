"""The tag by which a page tells other sites what a preview of it shows (Open Graph)."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.loader_tags import BLOCK_CONTEXT_KEY
from django.templatetags.static import static
from django.utils.safestring import mark_safe

from vskill.worker_context import get_worker_env

register = template.Library()


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
    return {
        "title": _block(context, "title"),
        "description": _block(context, "description"),
        "url": base + request.get_full_path(),
        "image": base + static("vskill/preview.png"),
    }


def _block(context: template.Context, name: str) -> str:
    # A template may have a block once, so this asks for what the page has put into it. The name of the product is told
    # apart from the title.
    blocks: Any = context.render_context.get(BLOCK_CONTEXT_KEY)
    block = blocks.get_block(name) if blocks is not None else None
    written = str(block.nodelist.render(context)).strip().removesuffix(" · vskill") if block is not None else ""
    return mark_safe(written)  # noqa: S308 - rendered, and so escaped already

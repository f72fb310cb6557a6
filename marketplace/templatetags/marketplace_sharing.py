"""Template tags by which a skill's page can be shared: its public address, and what others write to show its badge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template
from django.urls import reverse

from marketplace.addresses import public_base, skill_href
from marketplace.badges.views import frame, oembed_path
from vskill.worker_context import require_worker_env

register = template.Library()


@register.simple_tag(takes_context=True)
def sharing(context: Mapping[str, Any], slug: str) -> dict[str, str]:
    """Return the addresses of a skill for other sites, and the lines of Markdown and HTML that show its badge."""
    base = public_base(context["request"], require_worker_env())
    page, badge = base + skill_href(slug), base + reverse("marketplace:badge", args=[slug])
    return {
        "page": page,
        "base": base,
        "badge": badge,
        "oembed": f"{base}{reverse('marketplace:oembed')}?{oembed_path(base, slug)}",
        # A slug has letters, digits and hyphens, which mean nothing in either.
        "markdown": f"[![vskill: {slug}]({badge})]({page})",
        "html": f'<a href="{page}"><img src="{badge}" alt="vskill: {slug}"></a>',
        "frame": frame(base, slug),
    }

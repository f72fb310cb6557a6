"""Publishers that accounts have claimed, and skills that are offered and handed over."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from marketplace.models import SkillTransfer
from marketplace.ownership.claims import grant
from marketplace.ownership.transfers import hand_over
from vskill.environments import WorkerEnv
from vskill.models import RoleGrant

PAGE = "/account/publishers"
ACME, NEWCO = "https://github.com/acme/skills", "https://github.com/newco/skills"


def account(name: str, role: str = "") -> Any:
    """Make an account with a role, or with none."""
    user: Any = get_user_model()._default_manager.create_user(name)
    if role:
        RoleGrant.objects.create(
            user=user, environment="default", role=role, granted_by="root", granted_at=timezone.now()
        )
    return user


def owner_of(env: WorkerEnv, publisher: str, name: str) -> Client:
    """Return a client of an account that has claimed a publisher."""
    user = account(name)
    grant(env, user, f"github.com/{publisher}", publisher, actor="op", reason="known to us")
    client = Client()
    client.force_login(user)
    return client


def offered(client: Client, **more: str) -> Any:
    """Offer a skill as its owner would, and return the answer."""
    return client.post(PAGE, {"skill": "pdf-tools", "receiver": "github.com/newco", "reason": "we split up", **more})


def handed(env: WorkerEnv, slug: str = "pdf-tools", to: str = NEWCO) -> SkillTransfer:
    """Hand a skill over as an operator would."""
    return hand_over(env, slug, to, actor="op", reason="they split up")

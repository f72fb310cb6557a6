"""The table of access tokens, which lies in the database ``default`` beside the users."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from vskill.access_tokens.scopes import Scope


class AccessToken(models.Model):
    """What is known of a token: its owner, its environment, what it may do, and until when.

    The token itself is nowhere: ``digest`` is its SHA-256 in hex. That is enough without salt and without a slow hash,
    because nobody can go through 190 random bits. ``scopes`` are names with spaces between.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="access_tokens")
    namespace = models.CharField("environment", max_length=64)
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.CharField(max_length=100)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.CharField(max_length=150, blank=True)
    revoked_because = models.CharField(max_length=1000, blank=True)

    class Meta:
        verbose_name = "access token"
        verbose_name_plural = "access tokens"

    def __str__(self) -> str:
        return self.name

    @property
    def state(self) -> str:
        """Return ``active``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at <= timezone.now() else "active"

    def allows(self, scope: Scope) -> bool:
        """Return whether the token was made for this; what its owner may do is another question."""
        return str(scope) in self.scopes.split()

    def as_json(self) -> dict[str, Any]:
        """Return what may be shown of it."""
        return {
            "id": self.pk,
            "name": self.name,
            "user": self.user.get_username(),
            "environment": self.namespace,
            "scopes": self.scopes.split(),
            "state": self.state,
            **{
                key: moment.isoformat() if moment is not None else None
                for key, moment in (
                    ("createdAt", self.created_at),
                    ("expiresAt", self.expires_at),
                    ("lastUsedAt", self.last_used_at),
                    ("revokedAt", self.revoked_at),
                )
            },
        }


class DeviceLogin(models.Model):
    """A program that waits for a person to let it in (RFC 8628), until it has its token or its time is over.

    ``digest`` is the SHA-256 of the code that only the program knows, ``user_code`` what the person types. ``user`` is
    who approved it.
    """

    namespace = models.CharField("environment", max_length=64)
    digest = models.CharField(max_length=64, unique=True)
    user_code = models.CharField(max_length=8)
    label = models.CharField(max_length=100)
    scopes = models.CharField(max_length=100)
    expires_at = models.DateTimeField(db_index=True)
    polled_at = models.DateTimeField(null=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+")
    denied = models.BooleanField(default=False)

    class Meta:
        verbose_name = "device login"
        verbose_name_plural = "device logins"
        constraints = [models.UniqueConstraint(fields=["namespace", "user_code"], name="one_login_for_a_code")]

    def __str__(self) -> str:
        return self.label

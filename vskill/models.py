"""The tables of the installation itself, which lie in the database ``default`` beside users and sessions."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class StaffLimit(models.Model):
    """The only environments that a user may work in; a user without a row may work in all of them.

    ``environments`` is a list of names. An empty list, and a name that is configured no more, permit nothing. It does
    not hold superusers.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="environment_limit")
    environments = models.JSONField(default=list)

    class Meta:
        verbose_name = "limit to environments"
        verbose_name_plural = "limit to environments"

    def __str__(self) -> str:
        return f"only {', '.join(self.environments) or 'none'}"


class RoleGrant(models.Model):
    """The role of a user in one environment: viewer, submitter, reviewer, operator or admin."""

    ROLES = [(name, name) for name in ("viewer", "submitter", "reviewer", "operator", "admin")]

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="role_grants")
    environment = models.CharField(max_length=64)
    role = models.CharField(max_length=16, choices=ROLES)
    granted_by = models.CharField(max_length=150)
    granted_at = models.DateTimeField()

    class Meta:
        verbose_name = "role"
        verbose_name_plural = "roles"
        constraints = [models.UniqueConstraint(fields=["user", "environment"], name="one_role_in_an_environment")]

    def __str__(self) -> str:
        return f"{self.user.get_username()}: {self.role}"


class Team(models.Model):
    """A named set of accounts in one environment, to which a skill can be shown.

    What is shown to a team names its primary key, so that a team can be renamed, and nobody sees what was shown to one
    that is no more.
    """

    environment = models.CharField(max_length=64)
    name = models.CharField(max_length=40)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="vskill_teams")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["environment", "name"], name="one_team_of_a_name"),
        ]

    def __str__(self) -> str:
        return str(self.name)


class PasswordRequest(models.Model):
    """Somebody forgot a password in one environment; ``typed`` is a name or an address, which may be nobody's.

    It is answered by mail when it is ``due_at``, and kept for a while after it was, so that it is not answered again.
    """

    environment = models.CharField(max_length=64)
    typed = models.CharField(max_length=254)
    due_at = models.DateTimeField()
    tries = models.IntegerField(default=0)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "forgotten password"
        constraints = [models.UniqueConstraint(fields=["environment", "typed"], name="password_asked_once")]

    def __str__(self) -> str:
        return f"a forgotten password in {self.environment}"

"""The roles of the current environment in the admin: granted, changed and taken away by its admins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from vskill.models import RoleGrant
from vskill.worker_context import require_worker_env

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[RoleGrant]
    _ModelAdmin = admin.ModelAdmin[RoleGrant]
else:
    # Generic for type checkers only.
    _ModelForm = forms.ModelForm
    _ModelAdmin = admin.ModelAdmin


class RoleForm(_ModelForm):
    """A role for a user, who is named: whoever grants roles here need not see the accounts of all environments."""

    username = forms.CharField(max_length=150, help_text="Exactly as the account is called.")

    class Meta:
        model = RoleGrant
        fields = ("role",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields["username"].initial = self.instance.user.get_username()
            self.fields["username"].disabled = True

    def clean_username(self) -> str:
        """Return the name of a user without a role here, or whose role this is."""
        name: str = self.cleaned_data["username"]
        users: Any = get_user_model()._default_manager
        if (user := users.filter(username=name).first()) is None:
            raise ValidationError(
                "There is no such account. An admin of the installation makes one, or its owner signs in by a provider "
                "first."
            )
        if not self.instance.pk:
            if RoleGrant.objects.filter(user=user, environment=require_worker_env().name).exists():
                raise ValidationError("This account has a role here. Change that one.")
            self.instance.user = user
        return name


@admin.register(RoleGrant)
class RoleGrantAdmin(_ModelAdmin):
    """The roles of this environment; those of others are not seen."""

    form = RoleForm
    list_display = ("__str__", "role", "granted_by", "granted_at")
    list_filter = ("role",)
    search_fields = ("user__username",)
    fields = ("username", "role")

    def get_queryset(self, request: HttpRequest) -> QuerySet[RoleGrant]:
        """Return the roles of the environment that the host name selects."""
        here = super().get_queryset(request).filter(environment=require_worker_env().name)
        return here.select_related("user").order_by("user__username")

    def save_model(self, request: HttpRequest, obj: RoleGrant, form: Any, change: bool) -> None:
        """Save the role ``obj`` with who sent ``request`` to grant it, and when."""
        obj.environment = require_worker_env().name
        obj.granted_by = request.user.get_username()
        obj.granted_at = timezone.now()
        super().save_model(request, obj, form, change)

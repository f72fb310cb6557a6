"""The accounts in the admin: Django's page of a user, and below it the environments that the user is limited to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

from vskill.environments import all_environments
from vskill.models import StaffLimit

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[StaffLimit]
    _Inline = admin.StackedInline[StaffLimit, Any]
else:
    # Generic for type checkers only.
    _ModelForm = forms.ModelForm
    _Inline = admin.StackedInline


class LimitForm(_ModelForm):
    """The environments to choose from: those of the settings, and those of the limit that are configured no more."""

    environments = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Anywhere else this user cannot log in, and here sees no accounts. None chosen means no environment; "
        "delete the limit to permit all. It does not hold superusers.",
    )

    class Meta:
        model = StaffLimit
        fields = ("environments",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = dict.fromkeys([*all_environments(), *self.instance.environments])
        self.fields["environments"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]


class LimitInline(_Inline):
    """The limit of one user, which most users do not have."""

    model = StaffLimit
    form = LimitForm
    extra = 0


class AccountAdmin(UserAdmin):  # type: ignore[type-arg]  # only type checkers know the class as generic
    """Users, with the environments that each is limited to."""

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        """Return the limit for a user that exists; the form of a new one asks for name and password only."""
        return [LimitInline] if obj is not None else []


admin.site.unregister(get_user_model())
admin.site.register(get_user_model(), AccountAdmin)

"""The teams of the current environment in the admin, with their members by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Count, QuerySet
from django.http import HttpRequest

from vskill.accounts.teams import TeamRefused, accounts_named, check_team_name, teams_of
from vskill.models import Team
from vskill.worker_context import require_worker_env

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Team]
    _ModelAdmin = admin.ModelAdmin[Team]
else:
    # Generic for type checkers only.
    _ModelForm = forms.ModelForm
    _ModelAdmin = admin.ModelAdmin


class TeamForm(_ModelForm):
    """A team with its members, who are named: whoever fills teams need not see the accounts of all environments."""

    people = forms.CharField(
        required=False,
        label="Members",
        widget=forms.Textarea(attrs={"rows": 12}),
        help_text="One account on each line, exactly as it is called. What is shown to a team is for them, and for "
        "reviewers and those above them.",
    )

    class Meta:
        model = Team
        fields = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            names = self.instance.members.order_by("username").values_list("username", flat=True)
            self.fields["people"].initial = "\n".join(names)

    def clean_name(self) -> str:
        """Return a name that no other team here has."""
        name: str = self.cleaned_data["name"]
        try:
            check_team_name(name)
        except TeamRefused as error:
            raise ValidationError(str(error)) from error
        if teams_of(require_worker_env()).filter(name=name).exclude(pk=self.instance.pk).exists():
            raise ValidationError("There is a team of this name.")
        return name

    def clean_people(self) -> list[Any]:
        """Return the accounts that are named."""
        try:
            return accounts_named(one.strip() for one in self.cleaned_data["people"].splitlines() if one.strip())
        except TeamRefused as error:
            raise ValidationError(str(error)) from error


@admin.register(Team)
class TeamAdmin(_ModelAdmin):
    """The teams of this environment; those of others are not seen."""

    form = TeamForm
    list_display = ("name", "how_many")
    search_fields = ("name",)
    fields = ("name", "people")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Team]:
        """Return the teams of the environment that the host name selects, with the number of their members."""
        here = super().get_queryset(request).filter(environment=require_worker_env().name)
        return here.annotate(how_many=Count("members")).order_by("name")

    @admin.display(description="members")
    def how_many(self, team: Any) -> int:
        """Return how many members a team has."""
        return int(team.how_many)

    def save_model(self, request: HttpRequest, obj: Team, form: Any, change: bool) -> None:
        """Save the team ``obj`` with the members that ``form`` names."""
        obj.environment = require_worker_env().name
        super().save_model(request, obj, form, change)
        obj.members.set(form.cleaned_data["people"])

"""The form of the submit page."""

from __future__ import annotations

from django import forms


class RepositoryForm(forms.Form):
    """Ask for the address of a repository."""

    repository_url = forms.CharField(
        max_length=1100, error_messages={"required": "Enter the address of a git repository."}
    )

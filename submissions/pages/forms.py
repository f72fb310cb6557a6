"""The forms of the submit page."""

from __future__ import annotations

from django import forms

from submissions.listings import Choice


class RepositoryForm(forms.Form):
    """Ask for the address of a repository."""

    repository_url = forms.CharField(
        max_length=1100, error_messages={"required": "Enter the address of a git repository."}
    )


class ChoiceForm(forms.Form):
    """Narrow a list of skills down to a folder and words, and begin it at a number; what is no number is 0."""

    folder = forms.CharField(required=False, max_length=1000)
    q = forms.CharField(required=False, max_length=200)
    start = forms.IntegerField(required=False, min_value=0, max_value=1_000_000)

    def choice(self) -> Choice:
        """Return the folder and the words; a value that is not valid narrows nothing down."""
        self.full_clean()
        return Choice(self.cleaned_data.get("folder") or "", self.cleaned_data.get("q") or "")

    def start_at(self) -> int:
        """Return the number that the page begins at."""
        self.full_clean()
        return self.cleaned_data.get("start") or 0

"""What the word in the column ``visibility`` of a skill says: whether it is shown, and to whom."""

from __future__ import annotations

from marketplace.records import read_audience, read_shown_as


class WithAudience:
    """A row whose ``visibility`` is a word of ``records.shown_as``, which says to whom it is shown as well."""

    visibility: object

    @property
    def shown_as(self) -> str:
        """Return the word of the visibility and the audience."""
        return str(self.visibility)

    @property
    def standing(self) -> str:
        """Return the visibility, whoever it is shown to: one of ``Visibility``, or empty where the value is damaged."""
        try:
            return read_shown_as(str(self.visibility))[0]
        except ValueError:
            return ""

    @property
    def audience(self) -> str | None:
        """Return to whom it is shown where it is visible, ``None`` (nobody) where the value is damaged."""
        return read_audience(str(self.visibility))

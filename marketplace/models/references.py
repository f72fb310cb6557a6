"""The table of what published versions refer to: addresses that are fetched again, and who uses them."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from vskill.kv.clock import parse_isoformat
from vskill.kv.codec import storable
from vskill.kv.models import AbstractKVEntry

ADDRESS_PREFIX = "address:"
USE_PREFIX = "use:"
LONGEST_URL = 500


class ReferenceEntry(AbstractKVEntry):
    """An address, ``address:{digest}``, or its use by a version, ``use:{digest}:{version}``.

    The digest is that of the address. An address has what was found there last, ``due_at`` when it is fetched again and
    ``failures`` in a row. A use has what was found there first after the version was checked, and ``changed_at`` when
    that was seen to be something else.
    """

    projected_columns: ClassVar[tuple[str, ...]] = (
        "url",
        "host",
        "due_at",
        "failures",
        "version_number",
        "changed_at",
    )

    url = models.CharField(max_length=LONGEST_URL, blank=True, default="")
    host = models.CharField(max_length=255, blank=True, default="")
    due_at = models.DateTimeField(null=True, blank=True)
    failures = models.IntegerField(default=0)
    version_number = models.BigIntegerField(null=True, blank=True, help_text="the row of the version that uses it")
    changed_at = models.DateTimeField(null=True, blank=True)

    class Meta(AbstractKVEntry.Meta):
        verbose_name = "reference"
        indexes: ClassVar[list[models.Index]] = [
            *AbstractKVEntry.Meta.indexes,
            models.Index(fields=["namespace", "due_at"], condition=Q(due_at__isnull=False), name="reference_due"),
            models.Index(
                fields=["namespace", "version_number"],
                condition=Q(version_number__isnull=False),
                name="reference_of_version",
            ),
            models.Index(
                fields=["namespace", "-changed_at"], condition=Q(changed_at__isnull=False), name="reference_changed"
            ),
        ]

    @classmethod
    def project(cls, value: Any) -> dict[str, Any]:
        """Return the projected columns of a value; a field that is absent or of another type gives an empty column."""
        fields = value if isinstance(value, dict) else {}

        def text(name: str, length: int) -> str:
            found = fields.get(name)
            return storable(found)[:length] if isinstance(found, str) else ""

        def number(name: str) -> int | None:
            found = fields.get(name)
            return found if isinstance(found, int) and not isinstance(found, bool) else None

        return {
            "url": text("url", LONGEST_URL),
            "host": text("host", 255),
            "due_at": parse_isoformat(fields.get("dueAt")),
            "failures": number("failures") or 0,
            "version_number": number("versionNumber"),
            "changed_at": parse_isoformat(fields.get("changedAt")),
        }

"""The archives of versions, by what is in them."""

from __future__ import annotations

from django.db import models


class ArchiveBlob(models.Model):
    """The bytes of an archive by their SHA-256; never changed, and shared by versions with equal archives."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    content = models.BinaryField()
    size = models.BigIntegerField()

    def __str__(self) -> str:
        return self.sha256

"""The tables of uploads: files that a client has sent so far, and whole bundles, from which skills are read."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now


class StagedFile(models.Model):
    """A file that an account has sent ahead of the upload that will name it; it is removed after a day.

    ``account`` is the number of the account. Accounts share no file, so that nobody gets another's by its digest.
    """

    namespace = models.CharField(max_length=64)
    account = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    size = models.IntegerField()
    content = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "staged file"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "account", "sha256"], name="staged_file_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "created_at"], name="staged_file_oldest"),
        ]

    def __str__(self) -> str:
        return f"{self.sha256[:12]} of account {self.account}"


class UploadedBundle(models.Model):
    """The files of one uploaded skill, as they were sent; a row never changes.

    ``address`` is that of the skill (see ``upload_address`` and ``claimed_address``), and ``digest`` the content hash
    over ``manifest``: a list of path, size and SHA-256, in the order in which ``content`` has the bytes, one file
    behind the other. ``account`` is the number of the account that sent it, whose name alone another account may get
    later.
    """

    namespace = models.CharField(max_length=64)
    address = models.CharField(max_length=500)
    digest = models.CharField(max_length=64)
    account = models.BigIntegerField()
    manifest = models.JSONField()
    content = models.BinaryField()
    size = models.IntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "upload"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "address", "digest"], name="uploaded_bundle_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "account", "-created_at"], name="uploaded_bundle_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.address} {self.digest[:12]}"

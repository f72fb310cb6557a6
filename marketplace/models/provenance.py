"""The tables of signed provenance: public keys, signatures of versions, and the log of verdicts and withdrawals."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from vskill.kv.fields import KeyField


class SigningKey(models.Model):
    """A public key of the registry; its private half is in a file and never here.

    ``key_id`` is the SHA-256 (hex) of ``public_key``, which is in PEM. ``since`` is when it signed first, and ``until``
    when another one took its place; what it signed stays valid. Where somebody else may have it, it is compromised:
    nothing that it signed at ``compromised_since`` or later is trusted, and ``compromised_at`` is when that was told.
    """

    ED25519 = "ed25519"
    P256 = "ecdsa-p256-sha256"

    namespace = models.CharField(max_length=64)
    key_id = models.CharField(max_length=64)
    algorithm = models.CharField(max_length=32)
    public_key = models.TextField()
    since = models.DateTimeField(db_default=Now())
    until = models.DateTimeField(null=True, blank=True)
    compromised_since = models.DateTimeField(null=True, blank=True)
    compromised_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "key_id"], name="signing_key_once"),
        ]

    def __str__(self) -> str:
        return f"{self.algorithm} {self.key_id[:16]}"


class VersionSignature(models.Model):
    """What the registry signed of a version: a statement of where it is from, and its files.

    ``statement`` is a DSSE envelope with an in-toto statement, signed by ``key``; ``files`` is a Sigstore bundle as
    OpenSSF Model Signing makes it, signed by ``files_key``. Both are JSON, and never change, except that the registry
    signs anew what a compromised key signed; ``doubt`` says why it did not, where it cannot vouch for the version.
    """

    namespace = models.CharField(max_length=64)
    version = models.OneToOneField("marketplace.SkillVersion", on_delete=models.PROTECT, related_name="signature")
    statement = models.TextField()
    key = models.ForeignKey(SigningKey, on_delete=models.PROTECT, related_name="+")
    files = models.TextField()
    files_key = models.ForeignKey(SigningKey, on_delete=models.PROTECT, related_name="+")
    signed_at = models.DateTimeField(db_default=Now())
    doubt = models.TextField(blank=True, default="", db_default="")

    class Meta:
        verbose_name = "signature of a version"
        verbose_name_plural = "signatures of versions"

    def __str__(self) -> str:
        return f"signature of {self.version_id}"


class ReplacedSignature(models.Model):
    """What a compromised key had signed of a version, before the registry signed that anew; it is only kept.

    Its fields are those of ``VersionSignature``, and ``replaced_at`` is when another one took its place.
    """

    namespace = models.CharField(max_length=64)
    version = models.ForeignKey("marketplace.SkillVersion", on_delete=models.PROTECT, related_name="+")
    statement = models.TextField()
    key = models.ForeignKey(SigningKey, on_delete=models.PROTECT, related_name="+")
    files = models.TextField()
    files_key = models.ForeignKey(SigningKey, on_delete=models.PROTECT, related_name="+")
    signed_at = models.DateTimeField()
    replaced_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["version", "signed_at"], name="replaced_signature_once"),
        ]

    def __str__(self) -> str:
        return f"former signature of {self.version_id}"


class LogPending(models.Model):
    """What is to be appended to the log, written in the transaction of the change that it tells.

    Rows are only inserted, so that two publications never wait for each other because of the log.
    ``provenance.log.append_pending`` moves them into the log in the order of their numbers.
    """

    namespace = models.CharField(max_length=64)
    version_number = models.BigIntegerField(null=True, blank=True, help_text="the row of the version that it is about")
    kind = models.CharField(max_length=32)
    body = models.TextField()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "id"], name="log_pending"),
            models.Index(fields=["namespace", "version_number"], name="log_pending_version"),
        ]

    def __str__(self) -> str:
        return self.body[:80]


class LogLeaf(models.Model):
    """An entry of the log: its bytes, whose number in the log is ``number``, and their hash as a leaf (hex)."""

    namespace = models.CharField(max_length=64)
    number = models.BigIntegerField()
    version_number = models.BigIntegerField(null=True, blank=True, help_text="the row of the version that it is about")
    kind = models.CharField(max_length=32)
    body = models.TextField()
    leaf_hash = models.CharField(max_length=64)

    class Meta:
        verbose_name_plural = "log leaves"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "number"], name="log_leaf_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "version_number", "number"], name="log_leaf_version"),
        ]

    def __str__(self) -> str:
        return f"{self.number}: {self.body[:80]}"


class LogNode(models.Model):
    """The hash (hex) of a complete subtree of the log, of ``2 ** level`` leaves; ``number`` counts those of a level."""

    namespace = models.CharField(max_length=64)
    level = models.SmallIntegerField()
    number = models.BigIntegerField()
    node_hash = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "level", "number"], name="log_node_once"),
        ]

    def __str__(self) -> str:
        return f"{self.level}/{self.number}"


class LogState(models.Model):
    """How long the log of an environment is; whoever appends locks this row.

    ``peaks`` are the hashes (hex, with spaces between) of the complete subtrees that the tree consists of, the largest
    first.
    """

    namespace = KeyField(max_length=64, unique=True)
    size = models.BigIntegerField(default=0)
    peaks = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return f"{self.namespace}: {self.size}"


class TreeHead(models.Model):
    """A signed head of the log: ``note`` is a checkpoint with its size, its root hash and the signature of ``key``."""

    namespace = models.CharField(max_length=64)
    size = models.BigIntegerField()
    root_hash = models.CharField(max_length=64)
    note = models.TextField()
    key = models.ForeignKey(SigningKey, on_delete=models.PROTECT, related_name="+")
    signed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "size", "key"], name="tree_head_once"),
        ]

    def __str__(self) -> str:
        return f"{self.size} {self.root_hash[:16]}"

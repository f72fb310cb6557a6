"""The tables of the marketplace: skills, versions and history; modules beside have others, which are known here."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from marketplace.fields import JSONTextField, indexes_by_time
from marketplace.records import SkillRecord
from marketplace.shown_to import WithAudience
from vskill.kv.clock import parse_isoformat
from vskill.kv.codec import decode, storable
from vskill.kv.fields import KeyField
from vskill.kv.models import AbstractKVEntry, KVEntry

SKILL_PREFIX = "skill:"
ALIAS_PREFIX = "skill:alias:"


# What a list asks of each skill that it meets in its order: PostgreSQL reads it from the index, SQLite from the row.
_ASKED: Final = ["slug", "latest_version", "verdict", "license"]


class SkillEntry(WithAudience, AbstractKVEntry):
    """A published skill, ``skill:{slug}``, or a former name, ``skill:alias:{old slug}``.

    The projected columns of an alias are empty. Versions refer to the row of a skill, which keeps its primary key when
    the skill is renamed. ``downloads`` and ``recent_downloads`` are not projected: they are counted in the database and
    are not in the value.
    """

    projected_columns: ClassVar[tuple[str, ...]] = (
        "slug",
        "name",
        "display_name",
        "description",
        "publisher",
        "publisher_handle",
        "repo_url",
        "skill_path",
        "identity",
        "license",
        "latest_version",
        "verdict",
        "flag_reason",
        "visibility",
        "published_at",
        "changed_at",
    )

    slug = KeyField(max_length=200, blank=True, default="")
    name = models.CharField(max_length=200, blank=True, default="")
    display_name = models.CharField(max_length=200, blank=True, default="")
    description = models.CharField(max_length=1024, blank=True, default="")
    publisher = models.CharField(max_length=300, blank=True, default="")
    publisher_handle = models.CharField(max_length=200, blank=True, default="")
    repo_url = models.CharField(max_length=500, blank=True, default="")
    skill_path = models.CharField(max_length=400, blank=True, default="")
    identity = models.CharField(max_length=64, blank=True, default="")
    license = models.CharField(max_length=100, blank=True, default="")
    latest_version = models.CharField(max_length=64, blank=True, default="")
    verdict = models.CharField(max_length=16, blank=True, default="")
    visibility = models.CharField(max_length=16, blank=True, default="")
    published_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(null=True, blank=True)
    downloads = models.BigIntegerField(default=0)
    # With defaults in the database, because the previous release inserts rows without them.
    recent_downloads = models.BigIntegerField(default=0, db_default=0)
    flag_reason = models.CharField(max_length=500, blank=True, default="", db_default="")

    class Meta(AbstractKVEntry.Meta):
        verbose_name = "skill"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *AbstractKVEntry.Meta.constraints,
            models.UniqueConstraint(
                fields=["namespace", "identity"], condition=~Q(identity=""), name="skill_one_per_identity"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            *AbstractKVEntry.Meta.indexes,
            models.Index(
                fields=["namespace", "visibility", "-published_at", "-id"], include=_ASKED, name="skill_newest"
            ),
            models.Index(
                fields=["namespace", "visibility", "-changed_at", "-id"], include=_ASKED, name="skill_changed"
            ),
            models.Index(
                fields=["namespace", "visibility", "-downloads", "-id"], include=_ASKED, name="skill_downloads"
            ),
            models.Index(
                fields=["namespace", "visibility", "-recent_downloads", "-id"], include=_ASKED, name="skill_trending"
            ),
            models.Index(fields=["namespace", "visibility", "slug"], include=["id", *_ASKED[1:]], name="skill_slug"),
            models.Index(
                fields=["namespace", "publisher_handle", "visibility", "-published_at", "-id"], name="skill_publisher"
            ),
            models.Index(fields=["namespace", "publisher"], name="skill_owner"),
            models.Index(fields=["namespace", "repo_url"], name="skill_repository"),
            # For the prefix of an address, which PostgreSQL finds by no index of another operator class.
            models.Index(
                fields=["namespace", "repo_url"],
                opclasses=["varchar_ops", "varchar_pattern_ops"],
                name="skill_address_prefix",
            ),
            models.Index(fields=["namespace", "verdict", "-published_at", "-id"], name="skill_verdict"),
            models.Index(fields=["namespace", "license"], name="skill_license"),
            # SQLite uses the partial index of the constraint for no query that has the identity as a parameter.
            models.Index(fields=["namespace", "identity"], name="skill_identity"),
        ]

    @property
    def is_alias(self) -> bool:
        """Return whether the row is an alias."""
        return str(self.key).startswith(ALIAS_PREFIX)

    @property
    def record(self) -> SkillRecord:
        """Return the record in the value; raise ``MalformedRecord`` or ``ValueError`` where the value is no skill."""
        return SkillRecord.from_value(decode(self.value))

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the tags of the latest version."""
        return self.record.tags

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Return the capabilities of the latest version."""
        return self.record.capabilities

    @property
    def verdict_summary(self) -> str:
        """Return the sentence that explains the verdict of the latest version."""
        return self.record.verdict_summary

    @classmethod
    def project(cls, value: Any) -> dict[str, Any]:
        """Return the projected columns of a value; a field that is absent or not a string gives an empty column."""
        fields = value if isinstance(value, dict) else {}

        def text(name: str, length: int) -> str:
            found = fields.get(name)
            return storable(found)[:length] if isinstance(found, str) else ""

        return {
            "slug": text("slug", 200),
            "name": text("name", 200),
            "display_name": text("displayName", 200),
            "description": text("description", 1024),
            "publisher": text("publisher", 300),
            "publisher_handle": text("publisherHandle", 200),
            "repo_url": text("repoUrl", 500),
            "skill_path": text("skillPath", 400),
            "identity": text("identity", 64),
            "license": text("license", 100),
            "latest_version": text("latestVersion", 64),
            "verdict": text("verdict", 16),
            "flag_reason": text("flagReason", 500),
            "visibility": text("visibility", 16),
            "published_at": parse_isoformat(fields.get("publishedAt")),
            "changed_at": parse_isoformat(fields.get("updatedAt")),
        }


class BlockEntry(KVEntry):
    """An entry of the block list, ``blocked:{kind}:{value}``, for the admin; ``skills.blocklist`` writes it."""

    class Meta:
        proxy = True
        verbose_name = "blocked source or content"
        verbose_name_plural = "block list"


class SkillVersion(models.Model):
    """A version as it was verified; only its yank, its quarantine, its flags and what a later scan renews change.

    ``manifest`` lists the files (``path``, ``size``, ``sha256``, ``executable``). ``findings`` and ``engines`` are
    copies of the scan, because evidence must outlive the submission. ``contract``, what the skill declares beside what
    it does and refers to, is that of the latest scan. ``ordinal`` counts versions in the order of publication.
    ``scan_key`` names the engines, their versions and the rules by which it was last scanned (empty: before there was a
    key). ``normal_digest`` and its shingles are what known bad content is compared with, and ``flag_reason`` joins the
    reasons of its flags. ``changelog`` is what its uploader says of it, in one line that is safe to show.
    """

    namespace = models.CharField(max_length=64)
    skill = models.ForeignKey(SkillEntry, on_delete=models.PROTECT, related_name="versions")
    version = models.CharField(max_length=64)
    ordinal = models.BigIntegerField()
    submission_id = models.CharField(max_length=64)
    declared_version = models.CharField(max_length=64, blank=True, default="")
    commit_sha = models.CharField(max_length=64)
    # With defaults in the database: the previous release inserts rows without. Empty and None are where the skill is.
    source_ref = models.CharField(max_length=300, blank=True, default="", db_default="")
    repo_url = models.CharField(max_length=500, blank=True, default="", db_default="")
    skill_path = models.CharField(max_length=400, null=True, blank=True)  # noqa: DJ001 - empty is the root
    content_hash = models.CharField(max_length=64)
    fingerprint = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    license = models.CharField(max_length=200, blank=True)
    compatibility = models.CharField(max_length=500, blank=True)
    metadata = JSONTextField(default=dict)
    manifest = JSONTextField(default=list)
    skill_md = models.TextField(blank=True)
    verdict = models.CharField(max_length=16, blank=True)
    verdict_summary = models.TextField(blank=True)
    capabilities = JSONTextField(default=list)
    engines = JSONTextField(default=list)
    findings = JSONTextField(default=list)
    # None where no engine has said it: in versions from before, and in those that no engine has read.
    contract = JSONTextField(null=True, blank=True)
    size = models.BigIntegerField(help_text="of its files together, in bytes")
    zip_sha256 = models.CharField(max_length=64)
    zip_size = models.BigIntegerField()
    tar_sha256 = models.CharField(max_length=64)
    tar_size = models.BigIntegerField()
    yanked_at = models.DateTimeField(null=True, blank=True)
    yank_reason = models.TextField(blank=True, default="")
    quarantined_at = models.DateTimeField(null=True, blank=True)
    quarantine_reason = models.TextField(blank=True, default="")
    # With defaults in the database, because the previous release inserts rows without them.
    flag_reason = models.TextField(blank=True, default="", db_default="")
    scan_key = models.CharField(max_length=32, blank=True, default="", db_default="")
    normal_digest = models.CharField(max_length=64, blank=True, default="", db_default="")
    changelog = models.TextField(blank=True, default="", db_default="")
    signed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "version"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "skill", "version"], name="version_once"),
            models.UniqueConstraint(fields=["namespace", "skill", "content_hash"], name="version_content_once"),
            models.UniqueConstraint(fields=["namespace", "skill", "ordinal"], name="version_ordinal_once"),
            models.UniqueConstraint(fields=["namespace", "submission_id"], name="version_one_per_submission"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "content_hash"], name="version_content"),
            models.Index(fields=["namespace", "normal_digest"], name="version_normal_digest"),
            models.Index(fields=["namespace", "scan_key"], name="version_scan_key"),
            models.Index(fields=["namespace", "-id"], name="version_newest"),
            models.Index(fields=["namespace", "-id"], condition=Q(signed_at=None), name="version_unsigned"),
            *indexes_by_time("version", "yanked_at", "quarantined_at"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def withdrawn(self) -> bool:
        """Return whether the version is yanked or quarantined; such a version is never the latest."""
        return self.yanked_at is not None or self.quarantined_at is not None

    def file(self, path: str) -> dict[str, Any] | None:
        """Return the manifest's entry for a file, or ``None``."""
        return next((file for file in self.manifest if file["path"] == path), None)

"""Tables that are derived from skills: documents for search, facets, counts of lists, and of downloads."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from vskill.kv.fields import KeyField


class SearchDocument(models.Model):
    """What a skill is found by: the tokens of each field, separated by spaces.

    The index of the database's own engine over these columns is made by a migration and follows them by itself: the
    table ``marketplace_searchfts`` on SQLite, the columns ``words`` and ``names`` on PostgreSQL. Documents are numbered
    in the order in which the engine gives them, highest first; see ``search.documents.position_of``.
    """

    id = models.BigIntegerField(primary_key=True)
    namespace = models.CharField(max_length=64)
    skill = models.OneToOneField("marketplace.SkillEntry", on_delete=models.CASCADE, related_name="search_document")
    name = models.TextField()
    tags = models.TextField()
    owner = models.TextField()
    repository = models.TextField()
    description = models.TextField()
    body = models.TextField()

    def __str__(self) -> str:
        return str(self.name)


class WordSpelling(models.Model):
    """A word that skills have, and one of its spellings: itself, or without one of its letters.

    See ``search.spelling``. With ``in_names``, the name of a skill that was public has it; a word that came into a name
    later has rows of both kinds. It is kept when no skill has it any more, and whoever may see one with it or not.
    """

    namespace = models.CharField(max_length=64)
    spelling = KeyField(max_length=32)
    word = KeyField(max_length=32)
    in_names = models.BooleanField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "spelling", "word", "in_names"], name="word_spelling_once"),
        ]

    def __str__(self) -> str:
        return f"{self.spelling} for {self.word}"


class SearchToken(models.Model):
    """A token of a skill in the index that the release before searched; kept while that one may still run."""

    namespace = models.CharField(max_length=64)
    token = KeyField(max_length=64)
    skill = models.ForeignKey("marketplace.SkillEntry", on_delete=models.CASCADE, related_name="search_tokens")
    weight = models.SmallIntegerField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "token", "skill"], name="search_token_once"),
        ]

    def __str__(self) -> str:
        return str(self.token)


class SkillFacet(models.Model):
    """A value of a facet of which a skill has several: a tag, a capability, or an agent that it is made for."""

    TAG = "tag"
    CAPABILITY = "capability"
    AGENT = "agent"

    namespace = models.CharField(max_length=64)
    kind = models.CharField(max_length=16)
    value = KeyField(max_length=64)
    skill = models.ForeignKey("marketplace.SkillEntry", on_delete=models.CASCADE, related_name="facets")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "kind", "value", "skill"], name="facet_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


class DownloadDay(models.Model):
    """The number of downloads of one version on one day (UTC)."""

    namespace = models.CharField(max_length=64)
    skill = models.ForeignKey("marketplace.SkillEntry", on_delete=models.CASCADE, related_name="download_days")
    version = models.CharField(max_length=64)
    day = models.DateField()
    count = models.BigIntegerField(default=0)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["skill", "version", "day"], name="download_day_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "day", "skill"], name="download_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.version} on {self.day}: {self.count}"


class CountedClient(models.Model):
    """That the download of a version by a client was counted on a day; the keyed ``digest`` tells neither."""

    digest = models.CharField(max_length=64, primary_key=True)
    day = models.DateField(db_index=True)

    def __str__(self) -> str:
        return f"{self.digest[:12]} on {self.day}"


class SkillCount(models.Model):
    """How many skills of a list have a value of a facet, without what ``SkillCountChange`` holds of it.

    ``within`` names the list: empty is the one of all skills, ``verdict:clear`` the one of those with this verdict, and
    ``publisher:acme&verdict:clear`` of those that are of this publisher besides.
    ``kind`` is a facet, or ``total``, ``versions`` or ``publishers`` with an empty ``value``, or ``published`` or
    ``downloads`` with a day, such as 2026-11-29, as ``value``.
    """

    namespace = models.CharField(max_length=64)
    within = KeyField(max_length=300, blank=True)
    kind = KeyField(max_length=16)
    value = KeyField(max_length=200, blank=True)
    count = models.BigIntegerField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["namespace", "within", "kind", "value"], name="skill_count_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "within", "kind", "-count", "value"], name="skill_count_highest"),
        ]

    def __str__(self) -> str:
        return f"{self.count} {self.kind} {self.value} of {self.within or 'all'}"


class SkillCountChange(models.Model):
    """A change of one count, written in the transaction that changes the skill; see ``SkillCount``.

    Rows are only inserted, so that two publications never wait for each other because of a count, and are added up into
    the counts now and then.
    """

    namespace = models.CharField(max_length=64)
    within = KeyField(max_length=300, blank=True)
    kind = KeyField(max_length=16)
    value = KeyField(max_length=200, blank=True)
    change = models.IntegerField()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["namespace", "within", "kind", "value"], name="skill_count_change"),
        ]

    def __str__(self) -> str:
        return f"{self.change:+} {self.kind} {self.value} of {self.within or 'all'}"

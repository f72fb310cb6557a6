"""Write the document of a skill: the tokens of each of its fields, by which the engine of the database finds it.

Triggers (SQLite) and generated columns (PostgreSQL) keep the index of the engine in step with the documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from marketplace.models import SkillEntry
from marketplace.models.derived import SearchDocument
from marketplace.records import SkillRecord, Visibility
from marketplace.search.spelling import add_words, words_of
from marketplace.search.text import tokenize

# The highest numbers come first, so documents are numbered by their downloads, and of equals the newest comes first.
POSITION_BITS: Final = 40
MOST_DOWNLOADS: Final = 20
FIELDS: Final = ("name", "tags", "owner", "repository", "description", "body")
# Of 600 skills of two public collections, six have more. With 300 words and 20,000 characters half of them were cut;
# documents and their index are a fifth larger for it.
MOST_BODY_WORDS: Final = 1000
_LONGEST_BODY: Final = 60_000
_MOST_TOKENS: Final = {"name": 60, "tags": 60, "owner": 20, "repository": 20, "description": 300}
_LONGEST: Final = 4000


def position_of(skill_id: int, downloads: int) -> int:
    """Return the number of a skill's document; it rises with each doubling of the ``downloads``."""
    return min(downloads.bit_length(), MOST_DOWNLOADS) << POSITION_BITS | skill_id


def document_of(record: SkillRecord, body: str = "") -> dict[str, str]:
    """Return each field of a document: the tokens that describe ``record``, with ``body`` the text of its SKILL.md.

    The field of the body is that of ``body_of``.
    """
    texts = {
        "name": f"{record.name} {record.display_name} {record.slug}",
        "tags": " ".join(record.tags),
        "owner": record.publisher_handle,
        "repository": urlsplit(record.repo_url).path.rpartition("/")[2].removesuffix(".git"),
        "description": record.description,
    }
    fields = {
        name: " ".join(list(dict.fromkeys(tokenize(text[:_LONGEST])))[: _MOST_TOKENS[name]])
        for name, text in texts.items()
    }
    return {**fields, "body": body_of(body, fields)}


def index_skill(row: SkillEntry, record: SkillRecord, body: str, alias: str) -> None:
    """Replace the document of a skill by that of ``record``, in the database ``alias`` and the caller's transaction.

    ``body`` is the text of the SKILL.md of its latest version.
    """
    documents = SearchDocument.objects.using(alias)
    documents.filter(skill_id=row.pk).delete()
    fields = document_of(record, body)
    documents.create(id=position_of(row.pk, row.downloads), namespace=row.namespace, skill_id=row.pk, **fields)
    add_words(alias, row.namespace, words_of(fields, is_public=record.shown_as == Visibility.VISIBLE))


def renew_filters(row: SkillEntry, alias: str) -> None:
    """Have the document of a skill take from it what filters ask for, after that alone has changed."""
    # A trigger of PostgreSQL does it whenever a document is written; SQLite has the keys in an index.
    SearchDocument.objects.using(alias).filter(skill_id=row.pk).update(namespace=row.namespace)


def index_body(skill_id: int, version: str, body: str, alias: str) -> None:
    """Add the ``body`` of a ``version`` that is published just now, where it is the latest of the skill ``skill_id``.

    Call it in the transaction of the publication, in the database ``alias``.
    """
    documents = SearchDocument.objects.using(alias).filter(skill_id=skill_id, skill__latest_version=version)
    document = documents.first()
    if document is not None:
        document.body = body_of(body, {name: getattr(document, name) for name in FIELDS[:-1]})
        document.save(using=alias, update_fields=["body"])


def body_of(text: str, fields: Mapping[str, str]) -> str:
    """Return the field ``body`` for the ``text`` of a SKILL.md: its tokens that none of the other ``fields`` has."""
    seen = {token for tokens in fields.values() for token in tokens.split()}
    # The front matter is in the other fields, and its keys are the same in every skill.
    text = text.partition("\n---")[2] if text.startswith("---") else text
    tokens = dict.fromkeys(token for token in tokenize(text[:_LONGEST_BODY]) if token not in seen)
    return " ".join(list(tokens)[:MOST_BODY_WORDS])

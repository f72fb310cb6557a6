"""Search: words, prefixes and scripts without spaces; ranked, and the same on every database."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.catalog import quarantine_skill, restore, yank_version
from marketplace.errors import InvalidListing
from marketplace.models import SkillEntry
from marketplace.records import SkillRecord
from marketplace.search.documents import document_of
from marketplace.search.text import MAX_TOKEN_LENGTH, query_terms, tokenize
from marketplace.skills.search import search_sync
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv


def found(env: WorkerEnv, query: str) -> list[str]:
    return [hit.skill.slug for hit in search_sync(env, query)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("PDF-Tools_v2", ["pdf", "tools", "v2"]),
        ("Straße ﬁle", ["strasse", "file"]),
        ("読書", ["読", "書", "読書"]),
        ("pdf読書x", ["pdf", "読", "書", "読書", "x"]),
        ("…!?", []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@given(st.text())
def test_every_word_of_a_text_finds_it(text: str) -> None:
    tokens = tokenize(text)
    for term in query_terms(text):
        assert any(token.startswith(term) for token in tokens), (term, tokens)


@given(st.text())
def test_documents_can_be_stored_and_are_bounded(text: str) -> None:
    document = document_of(SkillRecord(slug="x", name=text or "x", description=text), text * 50)
    for tokens in document.values():
        assert len(tokens.split(" ")) <= 300
        assert all(len(token) <= MAX_TOKEN_LENGTH for token in tokens.split(" "))
        assert "\0" not in tokens
        tokens.encode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query", ["merge", "MERG", "documents merge", "pdf", "pdf-tools", "office", "acme", "縦書", "書", "Ｍｅｒｇｅ"]
)
def test_words_and_their_beginnings_find(env: WorkerEnv, query: str) -> None:
    publish_example(env, name="pdf-tools", description="Merge documents 縦書き", metadata={"tags": "office"})
    publish_example(env, name="other", description="Nothing of the kind", repo_url="https://github.com/mallory/x")

    assert found(env, query) == ["pdf-tools"]


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["", "!!!", "erge", "merge nothing", "%", "_", "merge' OR 1=1 --", "\ud800", "書縦"])
def test_what_is_not_there_is_not_found(env: WorkerEnv, query: str) -> None:
    publish_example(env, name="pdf-tools", description="Merge documents 縦書き")
    assert found(env, query) == []


@pytest.mark.django_db
def test_names_come_before_tags_and_tags_before_descriptions(env: WorkerEnv) -> None:
    publish_example(env, name="third", description="About invoices")
    publish_example(env, name="second", description="x", metadata={"tags": "invoices"})
    publish_example(env, name="invoices-helper", description="x")
    publish_example(env, name="invoices", description="x")

    assert found(env, "invoices") == ["invoices", "invoices-helper", "second", "third"]


@pytest.mark.django_db
def test_a_whole_word_comes_before_a_beginning(env: WorkerEnv) -> None:
    publish_example(env, name="gitlab-helper", description="x")
    publish_example(env, name="git-helper", description="x")

    assert found(env, "git") == ["git-helper", "gitlab-helper"]


@pytest.mark.django_db
def test_withdrawn_skills_are_not_found_and_restored_ones_are(env: WorkerEnv) -> None:
    publish_example(env, name="one")
    publish_example(env, name="two")
    quarantine_skill(env, "one", actor="test", reason="bad")
    yank_version(env, "two", "0.0.1", actor="test", reason="broken")
    assert found(env, "says") == []

    restore(env, "one", actor="test", reason="it was not")
    assert found(env, "says") == ["one"]


@pytest.mark.django_db
def test_another_environments_skills_are_not_found(env: WorkerEnv) -> None:
    publish_example(env)
    SkillEntry.objects.update(namespace="another")
    assert found(env, "hello") == []


@pytest.mark.django_db
def test_a_long_query_is_cut_and_a_very_long_one_refused(env: WorkerEnv) -> None:
    publish_example(env, description="alpha")
    assert found(env, "alpha " * 100) == ["hello-skill"]
    assert found(env, " ".join(f"word{n}" for n in range(100))) == []
    with pytest.raises(InvalidListing, match="use fewer words"):
        search_sync(env, "alpha " * 10_000)

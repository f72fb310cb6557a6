"""Search: words, prefixes and scripts without spaces; ranked, and the same on every database."""

from __future__ import annotations

import random
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connections
from hypothesis import given
from hypothesis import strategies as st

from marketplace.catalog import SkillFilters, list_skills, quarantine_skill, restore, yank_version
from marketplace.errors import InvalidListing
from marketplace.models import SkillEntry
from marketplace.models.derived import SearchDocument
from marketplace.records import SkillRecord
from marketplace.search.documents import MOST_BODY_WORDS, document_of
from marketplace.search.text import MAX_QUERY_TERMS, MAX_TOKEN_LENGTH, query_terms, tokenize, words_left_out
from marketplace.skills.answers import search_sync
from marketplace.skills.search_check import mend_documents, renew_positions, wrong_documents
from marketplace.skills.store import locked_skill, move_skill
from marketplace.skills.visibility import listed_skills
from tests.marketplace.factories import publish_example
from tests.marketplace.pages.page_factory import publish
from vskill.environments import WorkerEnv

migration = import_module("marketplace.migrations.0035_longer_texts")


def found(env: WorkerEnv, query: str) -> list[str]:
    return [hit.skill.slug for hit in search_sync(env, query)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("PDF-Tools_v2", ["pdf", "tools", "v2"]),
        ("Straße ﬁle", ["strasse", "file"]),
        ("読書", ["読", "書", "読書"]),
        ("pdf読書x", ["pdf", "読", "書", "読書", "x"]),
        ("ไทย", ["ไ", "ท", "ย", "ไท", "ทย"]),
        ("हिन्दी ཆོས་ལུགས", ["हिन्दी", "ཆོས", "ལུགས"]),
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


@given(st.lists(st.text("abc", min_size=1, max_size=3)))
def test_each_word_of_a_query_is_a_term_or_is_said_to_be_left_out(words: list[str]) -> None:
    terms, left_out = query_terms(" ".join(words)), words_left_out(" ".join(words))
    assert [*terms, *left_out] == list(dict.fromkeys(words))
    assert len(terms) == MAX_QUERY_TERMS or not left_out


def test_words_beyond_the_eighth_are_left_out_however_long_the_query_is() -> None:
    eight = [f"word{number}" for number in range(MAX_QUERY_TERMS)]
    assert words_left_out(" ".join(eight) + " " + " ".join(eight).upper()) == ()
    assert words_left_out(" ".join([*eight, *["word1"] * 100, "Last", "last", "one"])) == ("last", "one")
    # Eight pairs of nine characters are searched for; the ninth pair begins with the last of these.
    assert words_left_out("一二三四五六七八九十") == ("九十",)


@given(st.text())
def test_documents_can_be_stored_and_are_bounded(text: str) -> None:
    document = document_of(SkillRecord(slug="x", name=text or "x", description=text), text * 50)
    for name, tokens in document.items():
        assert len(tokens.split(" ")) <= (MOST_BODY_WORDS if name == "body" else 300)
        assert all(len(token) <= MAX_TOKEN_LENGTH for token in tokens.split(" "))
        assert "\0" not in tokens
        tokens.encode()


@pytest.mark.django_db
def test_the_first_thousand_words_of_a_text_are_found_and_those_of_an_earlier_release_are_indexed_anew(
    env: WorkerEnv,
) -> None:
    publish(env, "long", text=" ".join(f"w{number}w" for number in range(MOST_BODY_WORDS + 1)))
    publish(env, "short", text="w999w")
    assert (found(env, "w999w"), found(env, f"w{MOST_BODY_WORDS}w")) == (["short", "long"], [])
    for document in SearchDocument.objects.using(env.database).all():
        document.body = " ".join(document.body.split()[:300])
        document.save()
    assert found(env, "w999w") == ["short"]
    migration.index_more(apps, connections[env.database].schema_editor())
    assert found(env, "w999w") == ["short", "long"]
    assert wrong_documents(env) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query", ["merge", "MERG", "documents merge", "pdf", "pdf-tools", "office", "acme", "縦書", "書", "Ｍｅｒｇｅ"]
)
def test_words_and_their_beginnings_find(env: WorkerEnv, query: str) -> None:
    publish_example(env, name="pdf-tools", description="Merge documents 縦書き", metadata={"tags": "office"})
    publish_example(env, name="other", description="Nothing of the kind", repo_url="https://github.com/mallory/x")

    assert found(env, query) == ["pdf-tools"]


SCRIPTS = {
    # Each text with a part from its middle.
    "thai": ("แปลงเอกสารเป็นข้อความ", "เอกสาร"),
    "lao": ("ແປງເອກະສານເປັນຂໍ້ຄວາມ", "ເອກະສານ"),
    "khmer": ("បម្លែងឯកសារទៅជាអត្ថបទ", "ឯកសារ"),
    "burmese": ("စာရွက်စာတမ်းများကိုပြောင်းပါ", "စာတမ်း"),
    "tibetan": ("ཡིག་ཆ་སྒྱུར་བ", "སྒྱུར"),
    "javanese": ("ꦲꦏ꧀ꦱꦫꦗꦮ", "ꦱꦫ"),
    "hiragana": ("ぶんしょをへんかんする", "へんかん"),
    "katakana": ("ドキュメントコンバーター", "コンバーター"),
    "half width": ("ﾄﾞｷｭﾒﾝﾄ", "キュメ"),
    "chinese": ("转换文档为文本", "文档"),
    "korean": ("문서를변환합니다", "변환"),
    "hindi": ("दस्तावेज़ को पाठ में बदलें", "पाठ"),
}


@pytest.mark.django_db
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_text_without_spaces_is_found_by_its_parts(env: WorkerEnv, script: str) -> None:
    text, part = SCRIPTS[script]
    publish_example(env, name="one", description=text)
    publish_example(env, name="other", description=text[::-1][:4])

    assert found(env, part) == found(env, text) == ["one"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query", ["", "!!!", "cuments", "merge nothing", "%", "_", "merge' OR 1=1 --", "\ud800", "書縦"]
)
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


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(3))
def test_after_any_changes_the_index_finds_what_the_skills_say_and_pages_give_each_once(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("marketplace.skills.search.MOST_SCORED", 3)
    monkeypatch.setattr("marketplace.skills.search.MOST_LISTED", 4)
    chance = random.Random(seed)
    words = ["alpha", "beta", "gamma", "読書"]
    for number in range(12):
        text = " ".join(chance.choices(words, k=2))
        name = f"{chance.choice(words[:3])}-{number}"
        published = publish_example(env, name=name, description=text, repo_url=f"https://github.com/a/r{number}")
        SkillEntry.objects.filter(slug=published.slug).update(downloads=chance.randrange(50))
        match chance.randrange(6):
            case 0:
                yank_version(env, published.slug, published.version, actor="test", reason="broken")
            case 1:
                quarantine_skill(env, published.slug, actor="test", reason="bad")
            case 2:
                row = locked_skill(env, published.slug)
                move_skill(env, row, f"moved-{number}", actor="test", reason="renamed")
    assert wrong_documents(env) == []
    renew_positions(env)
    assert wrong_documents(env) == []
    assert renew_positions(env) == 0

    for query in (*words, "alpha beta", "moved"):
        truth = {
            row.slug
            for row in listed_skills(SkillEntry.objects.all())
            if all(f" {term}" in " " + " ".join(document_of(row.record).values()) for term in query_terms(query))
        }
        for sort in ("relevance", "name"):
            pages, cursor = [], None
            while True:
                page = list_skills(env, SkillFilters(query=query), sort=sort, limit=2, cursor=cursor)
                pages += [skill.slug for skill in page.skills]
                if (cursor := page.next_cursor) is None:
                    break
            assert sorted(pages) == sorted(truth), (query, sort)
        assert set(found(env, query)) == truth


@pytest.mark.django_db
def test_documents_that_are_lost_or_changed_are_found_and_mended(env: WorkerEnv) -> None:
    publish_example(env, name="one")
    publish_example(env, name="two")
    SearchDocument.objects.filter(skill__slug="one").delete()
    SearchDocument.objects.filter(skill__slug="two").update(description="nonsense")
    assert found(env, "one") == []

    wrong = wrong_documents(env)
    assert len(wrong) == 2
    mend_documents(env, wrong)
    assert wrong_documents(env) == []
    assert found(env, "one") == ["one"]
    assert found(env, "nonsense") == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query",
    ['"', "alpha OR zzz", "name:alpha", "NEAR(alpha zzz)", "alpha NOT beta", "*", "^alpha zzz", "''&|!:*", "\\"],
)
def test_operators_of_an_engine_are_words(env: WorkerEnv, query: str) -> None:
    publish_example(env, description="alpha")
    assert found(env, query) == []


@pytest.mark.django_db
def test_a_name_of_the_longest_letters_and_words_is_published_and_found(env: WorkerEnv) -> None:
    letters = "".join(chr(0x10400 + number % 40) for number in range(200))
    words = [letters[start : start + 9] for start in range(0, 190, 10)]
    publish_example(env, name=" ".join(words))
    assert len(found(env, words[0])) == 1


@pytest.mark.django_db
def test_what_is_hidden_among_the_first_hits_hides_none_after_them(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marketplace.skills.search.MOST_SCORED", 3)
    for number in range(20):
        publish_example(env, name=f"tool-{number}", description="alpha", repo_url=f"https://github.com/a/r{number}")
    for number in range(6, 20):
        quarantine_skill(env, f"tool-{number}", actor="test", reason="bad")
    assert sorted(found(env, "alpha")) == [f"tool-{number}" for number in range(6)]


@pytest.mark.django_db
def test_what_is_published_between_two_pages_moves_no_other_skill(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marketplace.skills.search.MOST_SCORED", 3)
    for engine in ("postgresql_terms", "sqlite"):
        monkeypatch.setattr(f"marketplace.search.{engine}._MOST_WORDS", 1)
    for number in range(8):
        publish_example(env, name=f"pdf-{number}", skill_path=str(number))
    seen, cursor = [], None
    while True:
        page = list_skills(env, SkillFilters(query="pdf"), limit=2, cursor=cursor)
        seen += [one.slug for one in page.skills]
        # In the name, with words that begin as those do that were there.
        publish_example(env, name=f"pdf-{'ium' * len(seen)}", skill_path=f"later/{len(seen)}")
        if (cursor := page.next_cursor) is None:
            break
    assert sorted(seen) == [f"pdf-{number}" for number in range(8)]

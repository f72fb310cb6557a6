"""SKILL.md as HTML: what authors need is there, and what an attacker needs is not."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.pages.markdown import MAX_HREFS_TOGETHER, render_skill_md

ALLOWED_TAGS = {
    *(
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "strong",
    ),
    *("table", "tbody", "td", "th", "thead", "tr", "ul"),
}


class Seen(HTMLParser):
    """Every element of a page as a browser would read it."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def elements(html: str) -> list[tuple[str, dict[str, str | None]]]:
    seen = Seen()
    seen.feed(html)
    return seen.elements


def file_address(path: str) -> str:
    return f"/skills/x/files/{path}"


def assert_harmless(html: str) -> None:
    for tag, attributes in elements(html):
        assert tag in ALLOWED_TAGS
        assert set(attributes) <= {"href", "rel", "start"}
        href = attributes.get("href")
        assert href is None or re.match(r"(https?:|mailto:|/skills/x/files/)", href, re.IGNORECASE), href


def test_what_authors_write_is_shown() -> None:
    html = render_skill_md(
        "---\nname: x\ndescription: y\n---\n# Title\n\nSome *words* and `code`.\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n~~old~~\n"
    )
    assert "<h3>Title</h3>" in html
    assert "<em>words</em>" in html
    assert "<td>2</td>" in html
    assert "<s>old</s>" in html
    assert "description" not in html


@pytest.mark.parametrize("start", ["\ufeff---\nname: x\n---\n", "---\r\nname: x\r\n---\r\n", "--- \nname: x\n---\t\n"])
def test_front_matter_is_stripped_however_it_is_written(start: str) -> None:
    assert render_skill_md(f"{start}Body").strip() == "<p>Body</p>"


def test_a_rule_in_the_body_is_no_front_matter() -> None:
    assert render_skill_md("---\nname: x\n---\nA\n\n---\n\nB").count("<hr>") == 1


def test_links_say_that_we_do_not_vouch_for_them() -> None:
    [(_, attributes)] = [one for one in elements(render_skill_md("[a](https://example.com/)")) if one[0] == "a"]
    assert attributes == {"href": "https://example.com/", "rel": "nofollow noopener ugc"}


@pytest.mark.parametrize(
    ("href", "wanted"),
    [
        ("references/REF.md", "/skills/x/files/references/REF.md"),
        ("./a/../b.md#part", "/skills/x/files/b.md"),
        ("a%20b.md", "/skills/x/files/a b.md"),
        ("../outside", None),
        ("a/../../outside", None),
        ("%2e%2e/outside", None),
        ("/admin/", None),
        ("//evil.example/", None),
        ("\\\\evil.example", None),
        ("#section", None),
        ("javascript:alert(1)", None),
        ("JaVaScRiPt:alert(1)", None),
        ("data:text/html,x", None),
        ("vbscript:x", None),
        ("file:///etc/passwd", None),
        ("ftp://example.com/", None),
        ("HTTPS://example.com/", "HTTPS://example.com/"),
        ("mailto:a@example.com", "mailto:a@example.com"),
    ],
)
def test_where_links_lead(href: str, wanted: str | None) -> None:
    html = render_skill_md(f"[words]({href})", file_address)
    assert "words" in html
    assert [attributes.get("href") for tag, attributes in elements(html) if tag == "a" and "href" in attributes] == (
        [wanted] if wanted else []
    )


def test_an_image_is_its_text_and_its_address() -> None:
    html = render_skill_md("![a pixel](https://evil.example/p.png) ![](data:image/png;base64," + "A" * 5000 + ")")
    assert "<img" not in html
    assert "[Image: a pixel (https://evil.example/p.png)]" in html
    assert len(html) < 500


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '<a href="javascript:alert(1)">x</a>',
        "<svg/onload=alert(1)>",
        "<iframe srcdoc='<script>alert(1)</script>'>",
        "[x](javascript&#58;alert(1))",
        "[x](java\nscript:alert(1))",
        '[x](https://e.example/" onmouseover="alert(1))',
        '[x](https://e.example "title\\" onclick=\\"alert(1)")',
        '<https://e.example/"onclick=alert(1)>',
        "```<script>alert(1)</script>\n<script>\n```",
        '```"><script>alert(1)</script>\nx\n```',
        "<!--><script>alert(1)</script>-->",
        "<style>@import 'https://evil.example'</style>",
        "<form action=https://evil.example><input name=password>",
        "<meta http-equiv=refresh content='0;url=https://evil.example'>",
        "<base href=https://evil.example>",
        '![x](https://e.example/"><script>alert(1)</script>)',
        "[a]: javascript:alert(1)\n\n[a]",
        "| <script>alert(1)</script> |\n|---|\n| <b onclick=x>y</b> |",
        "\0<script\0>alert(1)</script>",
        "<math><mtext></p><style><img src=x onerror=alert(1)></style>",
    ],
)
def test_hostile_text_becomes_harmless(text: str) -> None:
    assert_harmless(render_skill_md(text, file_address))


@given(st.text(alphabet=st.sampled_from("<>\"'`=/\\[]()!&#;:*_~|-\n ajhtpscrionle\0"), max_size=200))
def test_any_mixture_of_marks_becomes_harmless(text: str) -> None:
    assert_harmless(render_skill_md(text, file_address))


@pytest.mark.parametrize(
    ("character", "shown"),
    [
        ("\u202e", "[U+202E]"),
        ("\u200b", "[U+200B]"),
        ("\U000e0041", "[U+E0041]"),
        ("\U000e0152", "[U+E0152]"),
        ("\u3164", "[U+3164]"),
    ],
)
def test_hidden_characters_are_shown(character: str, shown: str) -> None:
    assert f"a{shown}b" in render_skill_md(f"a{character}b")


def test_joined_emoji_are_left_alone() -> None:
    assert "👩\u200d💻" in render_skill_md("👩\u200d💻")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        "![" * 500_000,
        "[a](" * 250_000,
        "[a][" * 250_000,
        "*a " * 300_000,
        "> " * 500_000,
        "- " * 500_000,
        "`" * 1_000_000,
        "<" * 1_000_000,
        "a|" * 30_000 + "\n" + "-|" * 30_000 + "\n" + "a\n" * 100_000,
        "|a" * 59 + "\n" + "|-" * 59 + "\n" + "a\n" * 100_000,
        "---\n" + "a: b\n" * 200_000,
        "\u200b" * 1_000_000,
        "".join("  " * depth + "- a\n" for depth in range(1_000)),
    ],
    ids=lambda text: repr(text[:6]),
)
def test_huge_and_deeply_nested_texts_stay_small(text: str) -> None:
    html = render_skill_md(text)
    assert len(html) < 4_000_000
    assert_harmless(html)


def test_one_long_address_is_not_repeated_without_end() -> None:
    html = render_skill_md("[a]: https://e.example/" + "x" * 1_500 + "\n\n" + "[a] " * 15_000)
    assert len(html) < 2 * MAX_HREFS_TOGETHER + 15_000 * 40


def test_a_text_that_is_cut_says_so() -> None:
    assert "The text goes on" in render_skill_md("word " * 20_000)
    assert "The text goes on" not in render_skill_md("word " * 100)

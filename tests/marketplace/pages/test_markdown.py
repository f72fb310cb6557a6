"""SKILL.md as HTML: what authors need is there, and what an attacker needs is not."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.pages.markdown import MAX_HREFS_TOGETHER, render_markdown
from marketplace.pages.text_links import TextLinks

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
        "img",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "span",
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


COMMIT = "0123456789abcdef0123456789abcdef01234567"
AT_COMMIT = f"https://github.com/acme/skills/blob/{COMMIT}"
FILES = frozenset({"SKILL.md", "b.md", "a b.md", "references/REF.md", "logo.png", "img/pic.webp", "drawing.svg"})
LINKS = TextLinks("x", FILES, repo_url="https://github.com/acme/skills", commit_sha=COMMIT, skill_path="skills/x")


def assert_harmless(html: str) -> None:
    for tag, attributes in elements(html):
        assert tag in ALLOWED_TAGS
        assert set(attributes) <= {"href", "rel", "start", "src", "alt", "loading", "title", "id", "tabindex"}
        assert attributes.get("tabindex") == ("0" if tag in {"pre", "table"} else None)
        href = attributes.get("href")
        assert href is None or re.match(
            r"(https?:|mailto:|/skills/x(/files/|#files)|#user-content-)", href, re.IGNORECASE
        )
        assert (attributes.get("src") or "/skills/x/images/").startswith("/skills/x/images/")
        assert (attributes.get("id") or "user-content-").startswith("user-content-")


def test_what_authors_write_is_shown() -> None:
    html = render_markdown(
        "---\nname: x\ndescription: y\n---\n# Title\n\nSome *words* and `code`.\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n~~old~~\n"
    )
    assert '<h3 id="user-content-title">Title</h3>' in html
    assert "<em>words</em>" in html
    assert "<td>2</td>" in html
    assert "<s>old</s>" in html
    assert "description" not in html


@pytest.mark.parametrize("start", ["\ufeff---\nname: x\n---\n", "---\r\nname: x\r\n---\r\n", "--- \nname: x\n---\t\n"])
def test_front_matter_is_stripped_however_it_is_written(start: str) -> None:
    assert render_markdown(f"{start}Body").strip() == "<p>Body</p>"


def test_a_rule_in_the_body_is_no_front_matter() -> None:
    assert render_markdown("---\nname: x\n---\nA\n\n---\n\nB").count("<hr>") == 1


def test_links_say_that_we_do_not_vouch_for_them() -> None:
    [(_, attributes)] = [one for one in elements(render_markdown("[a](https://example.com/)")) if one[0] == "a"]
    assert attributes == {"href": "https://example.com/", "rel": "nofollow noopener ugc"}


@pytest.mark.parametrize(
    ("href", "wanted"),
    [
        ("references/REF.md", "/skills/x/files/references/REF.md"),
        ("./a/../b.md#Part%20One", "/skills/x/files/b.md#user-content-part%20one"),
        ("b.md?plain=1", "/skills/x/files/b.md"),
        ("a%20b.md", "/skills/x/files/a%20b.md"),
        ("references/", "/skills/x#files"),
        ("references", "/skills/x#files"),
        ("..", f"{AT_COMMIT}/skills"),
        ("missing.md", None),
        ("../outside", f"{AT_COMMIT}/skills/outside"),
        ("../other/", f"{AT_COMMIT.replace('blob', 'tree')}/skills/other"),
        ("a/../../outside", f"{AT_COMMIT}/skills/outside"),
        ("%2e%2e/outside", f"{AT_COMMIT}/skills/outside"),
        ("../x/b.md", "/skills/x/files/b.md"),
        ("/README.md", f"{AT_COMMIT}/README.md"),
        ("/skills/x/b.md", "/skills/x/files/b.md"),
        ("../../../outside", None),
        ("/../outside", None),
        ("//evil.example/", None),
        ("/%2fevil.example/", None),
        ("\\\\evil.example", None),
        ("/%5cevil.example", None),
        ("a%0ab", None),
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
    html = render_markdown(f"[words]({href})", LINKS)
    assert "words" in html
    assert [attributes.get("href") for tag, attributes in elements(html) if tag == "a" and "href" in attributes] == (
        [wanted] if wanted else []
    )


def test_an_image_is_its_text_and_its_address() -> None:
    html = render_markdown("![a pixel](https://evil.example/p.png) ![](data:image/png;base64," + "A" * 5000 + ")")
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
    assert_harmless(render_markdown(text, LINKS))


@given(st.text(alphabet=st.sampled_from("<>\"'`=/\\[]()!&#;:*_~|-\n ajhtpscrionle\0"), max_size=200))
def test_any_mixture_of_marks_becomes_harmless(text: str) -> None:
    assert_harmless(render_markdown(text, LINKS))


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
    assert f"a{shown}b" in render_markdown(f"a{character}b")


def test_joined_emoji_are_left_alone() -> None:
    assert "👩\u200d💻" in render_markdown("👩\u200d💻")


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
    html = render_markdown(text)
    assert len(html) < 4_000_000
    assert_harmless(html)


def test_one_long_address_is_not_repeated_without_end() -> None:
    html = render_markdown("[a]: https://e.example/" + "x" * 1_500 + "\n\n" + "[a] " * 15_000)
    assert len(html) < 2 * MAX_HREFS_TOGETHER + 15_000 * 40


def test_a_text_that_is_cut_says_so() -> None:
    assert "The text goes on" in render_markdown("word " * 20_000)
    assert "The text goes on" not in render_markdown("word " * 100)


CONTENTS = """
- [Setup](#setup)
- [Use](#use-it)
- [Again](#use-it-1)
- [What's new?](#whats-new-in-v12_x)
- [Straße](#straße--co)
- [Encoded](#stra%C3%9Fe--co)
- [Case](#Setup)
- [No such heading](#nowhere)

# Setup
## Use *it*
## Use `it`
### What's new in [v1.2_x](https://example.com/)?
### Straße & Co.
"""


def test_a_table_of_contents_leads_to_its_headings_as_on_github() -> None:
    found = elements(render_markdown(CONTENTS))
    ids = [attributes["id"] for tag, attributes in found if tag.startswith("h")]
    hrefs = [unquote(attributes["href"] or "") for _, attributes in found if "href" in attributes]

    assert ids == [f"user-content-{one}" for one in ("setup", "use-it", "use-it-1", "whats-new-in-v12_x", "straße--co")]
    assert hrefs[:7] == [f"#{one}" for one in (*ids, ids[4], ids[0])]
    assert hrefs[7:] == ["https://example.com/"]


@pytest.mark.parametrize("name", ["files", "scan", "location", "cookie", r"\_\_proto\_\_", "L1", "nodeName"])
def test_no_heading_takes_the_id_of_our_page_or_a_property_of_its_document(name: str) -> None:
    [(_, attributes)] = elements(render_markdown(f"# {name}\n"))
    assert attributes == {"id": f"user-content-{name.lower()}".replace("\\", "")}


def test_a_heading_that_writes_the_prefix_itself_collides_with_no_other() -> None:
    html = render_markdown("# x\n# user-content-x\n# user-content-user-content-x\n# user-content-\n")
    assert re.findall(r'id="([^"]+)"', html) == ["user-content-x", "user-content-x-1", "user-content-x-2"]


def test_headings_that_share_a_name_have_ids_of_their_own() -> None:
    html = render_markdown("# a\n# a-1\n# a\n# a\n" + "# b\n" * 3_000)
    ids = re.findall(r'id="([^"]+)"', html)
    assert len(ids) == len(set(ids)) == 3_004
    assert [one.removeprefix("user-content-") for one in ids[:4]] == ["a", "a-1", "a-2", "a-3"]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("logo.png", "/skills/x/images/logo.png"),
        ("./img/pic.webp", "/skills/x/images/img/pic.webp"),
        ("/skills/x/logo.png", "/skills/x/images/logo.png"),
        ("drawing.svg", None),
        ("missing.png", None),
        ("../logo.png", None),
        ("https://evil.example/p.png", None),
        ("//evil.example/p.png", None),
        ("data:image/png;base64,AAAA", None),
    ],
)
def test_only_images_of_the_skill_are_shown(source: str, shown: str | None) -> None:
    images = [
        attributes for tag, attributes in elements(render_markdown(f"![a logo]({source})", LINKS)) if tag == "img"
    ]
    assert images == ([{"src": shown, "alt": "a logo", "loading": "lazy"}] if shown else [])


def test_an_image_that_is_not_shown_leads_to_where_it_is() -> None:
    drawing = render_markdown("![a drawing](drawing.svg)", LINKS)
    assert '<a href="/skills/x/files/drawing.svg"' in drawing
    assert f'<a href="{AT_COMMIT}/docs/a.png"' in render_markdown("![a](../../docs/a.png)", LINKS)
    assert "<a" not in render_markdown("![a](https://evil.example/p.png)", LINKS)


def test_an_image_in_a_link_stays_in_that_link() -> None:
    html = render_markdown("[![a](drawing.svg) ![b](logo.png)](https://example.com/)", LINKS)
    assert [tag for tag, _ in elements(html)] == ["p", "a", "img"]


def test_links_of_a_file_in_a_folder_start_there() -> None:
    html = render_markdown("[a](REF.md) [b](../b.md) [c](../../../README.md)", replace(LINKS, path="references/REF.md"))
    hrefs = [attributes["href"] for tag, attributes in elements(html) if tag == "a"]
    assert hrefs == ["/skills/x/files/references/REF.md", "/skills/x/files/b.md", f"{AT_COMMIT}/README.md"]


def test_links_are_pinned_to_the_version_that_is_shown() -> None:
    html = render_markdown("[a](b.md) ![c](logo.png)", replace(LINKS, exact="?version=1.0.0"))
    assert 'href="/skills/x/files/b.md?version=1.0.0"' in html
    assert 'src="/skills/x/images/logo.png?version=1.0.0"' in html


def test_where_the_pages_of_a_host_are_not_known_the_text_says_what_it_names() -> None:
    links = replace(LINKS, repo_url="https://git.example.org/acme/skills")
    html = render_markdown("[the guide](../../docs/guide.md)", links)
    assert elements(html)[1:] == [
        ("span", {"title": f"docs/guide.md in https://git.example.org/acme/skills at commit {COMMIT[:12]}"})
    ]


def test_a_title_cannot_break_out_of_its_attribute() -> None:
    links = replace(LINKS, repo_url="https://git.example.org/acme/skills")
    assert_harmless(render_markdown('[x](<../../a" onclick=alert(1) x=">) [y](<../../<script>>)', links))

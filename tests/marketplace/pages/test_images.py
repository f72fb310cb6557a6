"""Images of a skill: sent as what their bytes are, and nothing that a browser could run."""

from __future__ import annotations

import struct

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from marketplace.pages.images import LARGEST, measure
from tests.marketplace.pages.page_factory import png, publish
from vskill.environments import WorkerEnv

put = sync_to_async(publish)
GIF = b"GIF89a" + struct.pack("<HH", 3, 2) + b"\0\0\0;"
JPEG = b"\xff\xd8\xff\xe0\0\4ab" + b"\xff\xc4\0\2" + b"\xff\xc0\0\x0b\x08" + struct.pack(">HH", 2, 3) + b"\1\1\x11\0"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
HTML = b"<html><script>alert(1)</script></html>"


def webp(kind: bytes, rest: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + b"\0\0\0\0" + rest


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (png(), ("image/png", 3, 2)),
        (GIF, ("image/gif", 3, 2)),
        (JPEG, ("image/jpeg", 3, 2)),
        (webp(b"VP8X", b"\0\0\0\0" + b"\2\0\0\1\0\0"), ("image/webp", 3, 2)),
        (webp(b"VP8L", b"\x2f" + struct.pack("<I", 2 | 1 << 14)), ("image/webp", 3, 2)),
        (webp(b"VP8 ", b"\0" * 6 + struct.pack("<HH", 3, 2)), ("image/webp", 3, 2)),
        (SVG, ("", 0, 0)),
        (HTML, ("", 0, 0)),
        (b"", ("", 0, 0)),
        (png()[:18], ("", 0, 0)),
        (GIF[:7], ("", 0, 0)),
        (b"\xff\xd8\xff", ("", 0, 0)),
        (b"\xff\xd8\xff\xe0\xff\xff", ("", 0, 0)),
    ],
)
def test_kind_and_size_are_read_from_the_bytes(content: bytes, found: tuple[str, int, int]) -> None:
    assert measure(content) == found


@pytest.mark.django_db(transaction=True)
async def test_an_image_is_sent_as_its_own_type_in_a_sandbox(env: WorkerEnv) -> None:
    # The name says nothing: an image may be called anything.
    await put(env, version="1.0.0", files={"img/pic.gif": png()})
    response = await AsyncClient().get("/skills/release-notes/images/img/pic.gif?version=1.0.0")

    assert (response.status_code, response.content) == (200, png())
    assert response["Content-Type"] == "image/png"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert response["Cross-Origin-Resource-Policy"] == "same-origin"
    assert response["Cache-Control"].startswith("public, max-age=86400")
    again = await AsyncClient().get(
        "/skills/release-notes/images/img/pic.gif", headers={"If-None-Match": response["ETag"]}
    )
    assert (again.status_code, again["Cache-Control"]) == (304, "no-cache")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "content",
    [SVG, HTML, b"plain", png(40_000, 40_000), png(0, 5), b"\x89PNG\r\n\x1a\n", png() + b"\0" * LARGEST],
    ids=["svg", "html", "text", "bomb", "empty", "cut", "large"],
)
async def test_what_is_no_image_that_can_be_shown_is_not_sent(env: WorkerEnv, content: bytes) -> None:
    await put(env, files={"pic.png": content})
    assert (await AsyncClient().get("/skills/release-notes/images/pic.png")).status_code == 404


@pytest.mark.django_db(transaction=True)
async def test_only_files_of_a_version_that_is_shown_are_sent(env: WorkerEnv) -> None:
    await put(env, files={"pic.png": png()})
    for path in ("other.png", "..%2Fpic.png", "pic.png?version=9.9.9"):
        assert (await AsyncClient().get(f"/skills/release-notes/images/{path}")).status_code == 404
    assert (await AsyncClient().get("/skills/nobody/images/pic.png")).status_code == 404


@pytest.mark.django_db(transaction=True)
async def test_the_page_of_a_skill_shows_its_images_and_leads_to_its_files(env: WorkerEnv) -> None:
    text = "![the logo](logo.png)\n\n[more](references/more.md#part)\n\n[all](#end)\n\n# End\n"
    await put(env, files={"logo.png": png(), "references/more.md": b"# Part\n\n![up](../logo.png)\n"}, text=text)
    skill = (await AsyncClient().get("/skills/release-notes")).content.decode()
    file = (await AsyncClient().get("/skills/release-notes/files/references/more.md")).content.decode()
    image = (await AsyncClient().get("/skills/release-notes/files/logo.png")).content.decode()

    assert '<img src="/skills/release-notes/images/logo.png" alt="the logo" loading="lazy">' in skill
    assert 'href="/skills/release-notes/files/references/more.md#user-content-part"' in skill
    assert 'href="#user-content-end"' in skill
    assert '<h3 id="user-content-part">Part</h3>' in file
    assert 'src="/skills/release-notes/images/logo.png"' in file
    assert '<li id="L1">' in file
    assert '<img src="/skills/release-notes/images/logo.png" alt="The image logo.png">' in image


@pytest.mark.django_db(transaction=True)
async def test_the_page_of_a_file_that_only_is_called_an_image_says_what_it_is(env: WorkerEnv) -> None:
    await put(env, files={"a.png": SVG, "b.png": b"\0\1"})
    text = (await AsyncClient().get("/skills/release-notes/files/a.png")).content.decode()
    binary = (await AsyncClient().get("/skills/release-notes/files/b.png")).content.decode()
    assert "/images/" not in text + binary
    assert "&lt;script&gt;" in text
    assert "not a text file" in binary

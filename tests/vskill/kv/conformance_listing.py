"""What every namespace promises about listing; a backend runs these tests as it runs those beside them."""

from __future__ import annotations

import asyncio

import pytest

from tests.vskill.kv.conformance import ODD_KEYS
from vskill.kv.errors import InvalidCursor, InvalidKey
from vskill.kv.listing import KeyPage, ListedKey
from vskill.kv.port import Namespace


async def fill(namespace: Namespace, keys: list[str]) -> None:
    """Write an entry for each key."""
    await asyncio.gather(*(namespace.put(key, key) for key in keys))


async def pages(namespace: Namespace, prefix: str, limit: int) -> list[list[str]]:
    """Return the names of every page."""
    found: list[list[str]] = []
    cursor: str | None = None
    while True:
        page = await namespace.list(prefix, limit=limit, cursor=cursor)
        found.append([key.name for key in page.keys])
        assert page.list_complete == (page.cursor is None)
        if page.list_complete:
            return found
        cursor = page.cursor


class ListingConformance:
    """The tests of listing."""

    async def test_nothing_is_a_complete_page(self, namespace: Namespace) -> None:
        assert await namespace.list("sub:") == KeyPage((), list_complete=True)

    async def test_metadata_is_listed_beside_its_key(self, namespace: Namespace) -> None:
        await namespace.put("a", 1, metadata={"owner": "世界"})
        await namespace.put("b", 2)
        assert (await namespace.list()).keys == (ListedKey("a", {"owner": "世界"}), ListedKey("b", {}))

    async def test_keys_are_listed_in_the_order_of_their_bytes(self, namespace: Namespace) -> None:
        await fill(namespace, ODD_KEYS)
        listed = [key async for key in namespace.list_all()]
        assert listed == sorted(ODD_KEYS, key=str.encode)

    @pytest.mark.parametrize(
        "prefix",
        ["sub:", "Sub:", "s", "sub:%", "sub:_", "sub:\\", "é", "e", "日", "\uffff", "\U0010ffff", "\ud7ff", "", "zz"],
        ids=ascii,
    )
    async def test_a_prefix_lists_the_keys_that_start_with_it_and_no_others(
        self, namespace: Namespace, prefix: str
    ) -> None:
        keys = ["sub:1", "sub:%", "sub:%a", "sub:_b", "sub:\\c", "Sub:1", "SUB:1", "sub;", "sub", "suc:", "sua", "sub9"]
        keys += ["é", "éa", "e\u0301", "e", "日本", "日", "\uffff", "\uffffa", "\U0010ffff", "\U0010ffff\U0010ffff"]
        keys += ["\ud7ff", "\ud7ff\U0010ffff", "\ue000"]
        await fill(namespace, keys)
        expected = sorted((key for key in keys if key.startswith(prefix)), key=str.encode)
        assert [key async for key in namespace.list_all(prefix)] == expected
        assert [key for page in await pages(namespace, prefix, 2) for key in page] == expected

    @pytest.mark.parametrize("prefix", ["\0", "a\ud800", "x" * 513], ids=["nul", "half a pair", "too long"])
    async def test_a_prefix_that_no_key_could_have_is_refused(self, namespace: Namespace, prefix: str) -> None:
        with pytest.raises(InvalidKey):
            await namespace.list(prefix)

    async def test_pages_are_full_but_for_the_last_and_end_exactly(self, namespace: Namespace) -> None:
        await fill(namespace, [f"key-{number}" for number in range(6)])
        assert [len(page) for page in await pages(namespace, "key-", 4)] == [4, 2]
        assert [len(page) for page in await pages(namespace, "key-", 3)] == [3, 3]
        assert [len(page) for page in await pages(namespace, "key-", 6)] == [6]

    @pytest.mark.parametrize(("limit", "listed"), [(-1, 1), (0, 1), (1, 1), (2, 2)])
    async def test_a_limit_is_at_least_one(self, namespace: Namespace, limit: int, listed: int) -> None:
        await fill(namespace, ["a", "b", "c"])
        assert len((await namespace.list(limit=limit)).keys) == listed

    async def test_more_keys_than_one_page_holds_are_no_special_case(self, namespace: Namespace) -> None:
        keys = [f"sub:{number:04}" for number in range(2500)]
        await fill(namespace, [*keys, "other", "tub:"])
        assert [key async for key in namespace.list_all("sub:")] == keys
        assert [len(page) for page in await pages(namespace, "sub:", 5000)] == [1000, 1000, 500]
        assert [outcome.value async for outcome in namespace.get_many(namespace.list_all("sub:"))] == keys

    async def test_keys_written_meanwhile_neither_repeat_nor_hide_another(self, namespace: Namespace) -> None:
        before = [f"sub:{number:02}" for number in range(0, 40, 2)]
        await fill(namespace, before)
        seen: list[str] = []
        cursor: str | None = None
        added = iter(range(1, 40, 2))
        while True:
            page = await namespace.list("sub:", limit=3, cursor=cursor)
            seen += [key.name for key in page.keys]
            if page.list_complete:
                break
            cursor = page.cursor
            # One far behind the cursor and one right behind it or before it, in turn.
            await fill(namespace, [f"sub:{next(added):02}", f"sub:{next(added):02}"])
        assert sorted(set(seen)) == seen
        assert set(before) <= set(seen)

    async def test_a_listing_goes_on_when_the_key_of_its_cursor_is_gone(self, namespace: Namespace) -> None:
        await fill(namespace, ["a", "b", "c", "d"])
        page = await namespace.list(limit=2)
        await namespace.delete("b")
        assert [key.name for key in (await namespace.list(cursor=page.cursor)).keys] == ["c", "d"]

    async def test_a_cursor_is_bound_to_its_prefix_and_its_environment(
        self, namespace: Namespace, neighbour: Namespace
    ) -> None:
        await fill(namespace, ["sub:1", "sub:2", "skill:1"])
        cursor = (await namespace.list("sub:", limit=1)).cursor
        assert cursor is not None
        for prefix in ("", "s", "sub", "sub:1", "skill:"):
            with pytest.raises(InvalidCursor, match="another listing"):
                await namespace.list(prefix, cursor=cursor)
        with pytest.raises(InvalidCursor, match="another listing"):
            await neighbour.list("sub:", cursor=cursor)
        assert [key.name for key in (await namespace.list("sub:", cursor=cursor)).keys] == ["sub:2"]

    @pytest.mark.parametrize(
        "cursor",
        [
            "x",
            "ä",
            "bm90IGpzb24",
            "WzEsMl0",
            "W10",
            "e30",
            "bnVsbA",
            "W1tbW1tb" * 2000,
            "%%%",
            "\0",
            "WyJhIiwgIlx1MDAwMCJd",
        ],
        ids=["short", "umlaut", "text", "numbers", "empty", "object", "null", "deep", "percent", "nul", "nul inside"],
    )
    async def test_what_is_no_cursor_is_refused(self, namespace: Namespace, cursor: str) -> None:
        with pytest.raises(InvalidCursor):
            await namespace.list("sub:", cursor=cursor)

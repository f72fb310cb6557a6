"""What every namespace promises about reading and writing.

A backend runs these tests by subclassing ``NamespaceConformance`` with the fixtures ``namespace`` and ``neighbour``
(the same store, seen from another environment) and with ``damage``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vskill.kv.errors import EntryUnavailable, InvalidKey, InvalidValue, VersionConflict
from vskill.kv.outcomes import Outcome, ReadCounts, Status
from vskill.kv.port import Namespace

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FAR_AHEAD = datetime(2200, 1, 1, tzinfo=UTC)

VALUES: list[Any] = [
    {"text": "Grüße, 世界 \U0001f600", "nested": [1, 2.5, None, True, {"": []}]},
    None,
    "",
    "\0 is a character of JSON",
    0,
    10**4000,
    -1.5e-300,
    [],
    {},
    {"state": "RECEIVED" * 20_000},
]

ODD_KEYS = [
    "plain",
    "PLAIN",
    "plain ",
    " plain",
    "é",
    "e\u0301",
    "ﬁ",
    "fi",
    "ı",
    "ß",
    "ss",
    "\u200bplain",
    "pl\u00adain",
    "\u202eplain",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\ufeffplain",
    "\ufffd",
    "\uffff",
    "\U0010ffff",
    "\x01",
    "\x7f",
    "a\nb",
    "a\tb",
    "a%b",
    "a_b",
    "a\\b",
    "a'b",
    'a"b',
    "a;--b",
    "a/b",
    "a:b",
    "日本語",
    "x" * 512,
    "\U0001f600" * 512,
]


class NamespaceConformance:
    """The tests of reading and writing."""

    async def damage(self, namespace: Namespace, key: str, text: str) -> None:
        """Put ``text`` where the JSON of an entry was."""
        raise NotImplementedError

    @pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
    async def test_a_value_comes_back_as_it_was_written(self, namespace: Namespace, value: Any) -> None:
        assert await namespace.put("key", value) == 1
        assert await namespace.get("key") == Outcome("key", Status.VALUE, value, 1)

    async def test_a_key_that_nobody_wrote_is_missing(self, namespace: Namespace) -> None:
        outcome = await namespace.get("key")
        assert outcome == Outcome("key", Status.MISSING)
        assert outcome.absent
        with pytest.raises(EntryUnavailable, match="missing"):
            outcome.require()

    async def test_metadata_comes_back_and_belongs_to_its_write(self, namespace: Namespace) -> None:
        await namespace.put("key", 1, metadata={"owner": "世界", "at": [1]})
        assert (await namespace.get("key")).metadata == {"owner": "世界", "at": [1]}
        await namespace.put("key", 1)
        assert (await namespace.get("key")).metadata == {}

    @pytest.mark.parametrize(
        "value", [float("nan"), float("inf"), b"", {1}, object()], ids=["nan", "inf", "bytes", "set", "object"]
    )
    async def test_what_json_does_not_have_is_refused_and_nothing_is_written(
        self, namespace: Namespace, value: Any
    ) -> None:
        await namespace.put("key", "before")
        with pytest.raises(InvalidValue):
            await namespace.put("key", value)
        with pytest.raises(InvalidValue):
            await namespace.put("key", "after", metadata={"of": value})
        assert await namespace.get("key") == Outcome("key", Status.VALUE, "before", 1)

    async def test_what_is_changed_in_a_result_does_not_change_the_entry(self, namespace: Namespace) -> None:
        await namespace.put("key", {"list": []}, metadata={"list": []})
        outcome = await namespace.get("key")
        outcome.value["list"].append(1)
        outcome.metadata["list"].append(1)
        assert await namespace.get("key") == Outcome("key", Status.VALUE, {"list": []}, 1, {"list": []})

    async def test_callers_that_ask_for_one_key_at_once_share_no_object(self, namespace: Namespace) -> None:
        await namespace.put("key", {"list": []})
        first, second, third = await asyncio.gather(*(namespace.get("key") for _ in range(3)))
        first.value["list"].append("changed")
        first.metadata["changed"] = True
        assert second == third == Outcome("key", Status.VALUE, {"list": []}, 1)

    # --- keys

    async def test_odd_keys_are_all_different_and_each_keeps_its_value(self, namespace: Namespace) -> None:
        for number, key in enumerate(ODD_KEYS):
            await namespace.put(key, number, expect_version=0)
        outcomes = await asyncio.gather(*(namespace.get(key) for key in ODD_KEYS))
        assert [outcome.value for outcome in outcomes] == list(range(len(ODD_KEYS)))
        assert [outcome.key async for outcome in namespace.get_many(ODD_KEYS)] == ODD_KEYS

    @pytest.mark.parametrize(
        "key",
        ["", "x" * 513, "a\0b", "\0", "a\ud800", "\udfff"],
        ids=["empty", "long", "nul", "nul alone", "high", "low"],
    )
    async def test_a_key_that_some_database_could_not_hold_is_refused(self, namespace: Namespace, key: str) -> None:
        with pytest.raises(InvalidKey):
            await namespace.put(key, 1)
        with pytest.raises(InvalidKey):
            await namespace.get(key)
        with pytest.raises(InvalidKey):
            await namespace.delete(key)
        with pytest.raises(InvalidKey):
            _ = [outcome async for outcome in namespace.get_many(["good", key])]

    async def test_environments_do_not_see_each_other(self, namespace: Namespace, neighbour: Namespace) -> None:
        await namespace.put("key", "ours")
        assert (await neighbour.get("key")).absent
        assert (await neighbour.list()).keys == ()
        assert not await neighbour.delete("key")
        await neighbour.put("key", "theirs", expires_at=LONG_AGO)
        assert await neighbour.purge_expired() == 1
        assert (await namespace.get("key")).value == "ours"

    # --- compare-and-set

    async def test_every_write_raises_the_version(self, namespace: Namespace) -> None:
        assert [await namespace.put("key", number) for number in range(3)] == [1, 2, 3]
        assert await namespace.put("key", 3, expect_version=3) == 4
        assert await namespace.get("key") == Outcome("key", Status.VALUE, 3, 4)

    @pytest.mark.parametrize("expected", [0, 1, 3])
    async def test_a_writer_who_is_late_is_told_and_writes_nothing(self, namespace: Namespace, expected: int) -> None:
        await namespace.put("key", "first")
        await namespace.put("key", "second")
        with pytest.raises(VersionConflict) as caught:
            await namespace.put("key", "late", expect_version=expected)
        assert caught.value.code == "version_conflict"
        assert await namespace.get("key") == Outcome("key", Status.VALUE, "second", 2)

    async def test_a_version_is_expected_in_vain_where_nothing_is(self, namespace: Namespace) -> None:
        with pytest.raises(VersionConflict):
            await namespace.put("key", 1, expect_version=1)
        assert (await namespace.get("key")).status is Status.MISSING

    @pytest.mark.parametrize("expected", [0, 1], ids=["to be the first", "the same version"])
    async def test_of_many_writers_one_wins_and_the_others_are_told(self, namespace: Namespace, expected: int) -> None:
        if expected:
            await namespace.put("key", "before")
        written = await asyncio.gather(
            *(namespace.put("key", number, expect_version=expected) for number in range(20)), return_exceptions=True
        )
        winners = [number for number, version in enumerate(written) if version == expected + 1]
        assert len(winners) == 1
        assert sum(isinstance(result, VersionConflict) for result in written) == 19
        assert await namespace.get("key") == Outcome("key", Status.VALUE, winners[0], expected + 1)

    async def test_writers_who_expect_nothing_all_write(self, namespace: Namespace) -> None:
        versions = await asyncio.gather(*(namespace.put("key", number) for number in range(20)))
        assert sorted(versions) == list(range(1, 21))

    async def test_increments_by_compare_and_set_are_all_kept(self, namespace: Namespace) -> None:
        await namespace.put("counter", 0)

        async def increment() -> None:
            while True:
                outcome = await namespace.get("counter")
                try:
                    await namespace.put("counter", outcome.value + 1, expect_version=outcome.version)
                except VersionConflict:
                    continue
                return

        async def writer() -> None:
            for _ in range(10):
                await increment()

        await asyncio.gather(*(writer() for _ in range(8)))
        assert await namespace.get("counter") == Outcome("counter", Status.VALUE, 80, 81)

    async def test_an_entry_is_deleted_once(self, namespace: Namespace) -> None:
        await namespace.put("key", 1)
        deleted = await asyncio.gather(*(namespace.delete("key") for _ in range(5)))
        assert sorted(deleted) == [False] * 4 + [True]
        assert (await namespace.get("key")).status is Status.MISSING

    async def test_an_entry_at_another_version_is_not_deleted(self, namespace: Namespace) -> None:
        await namespace.put("key", 1)
        await namespace.put("key", 2)
        with pytest.raises(VersionConflict):
            await namespace.delete("key", expect_version=1)
        with pytest.raises(VersionConflict):
            await namespace.delete("key", expect_version=0)
        assert (await namespace.get("key")).value == 2
        assert await namespace.delete("key", expect_version=2)
        with pytest.raises(VersionConflict):
            await namespace.delete("key", expect_version=2)
        assert not await namespace.delete("key", expect_version=0)

    @pytest.mark.parametrize("ending", ["deleted", "purged"])
    async def test_a_version_tells_nothing_about_an_entry_that_came_after(
        self, namespace: Namespace, ending: str
    ) -> None:
        read = await namespace.put("key", "first life", expires_at=LONG_AGO if ending == "purged" else None)
        assert await namespace.delete("key") if ending == "deleted" else await namespace.purge_expired() == 1
        assert await namespace.put("key", "second life", expect_version=0) == read == 1
        # The limit of compare-and-set: whoever read the first life writes over the second, and is not told.
        assert await namespace.put("key", "third", expect_version=read) == 2

    async def test_a_version_goes_on_where_an_expired_entry_is_written_over(self, namespace: Namespace) -> None:
        read = await namespace.put("key", "first life", expires_at=LONG_AGO)
        assert await namespace.put("key", "second life", expect_version=0) == read + 1
        with pytest.raises(VersionConflict):
            await namespace.put("key", "late", expect_version=read)

    # --- expiry

    async def test_an_entry_is_there_until_it_expires(self, namespace: Namespace) -> None:
        await namespace.put("by time", 1, expires_at=FAR_AHEAD)
        await namespace.put("by ttl", 2, ttl=timedelta(days=365))
        assert [(await namespace.get(key)).value for key in ("by time", "by ttl")] == [1, 2]

    @pytest.mark.parametrize(
        "expiry", [{"expires_at": LONG_AGO}, {"ttl": timedelta(seconds=-1)}, {"ttl": timedelta()}], ids=str
    )
    async def test_expired_is_absent_for_every_reader_and_writer(
        self, namespace: Namespace, expiry: dict[str, Any]
    ) -> None:
        await namespace.put("key", "old")
        await namespace.put("key", "old", **expiry)
        assert await namespace.get("key") == Outcome("key", Status.EXPIRED)
        assert [outcome.status async for outcome in namespace.get_many(["key"])] == [Status.EXPIRED]
        assert (await namespace.list()).keys == ()
        assert [key async for key in namespace.list_all()] == []
        assert not await namespace.delete("key")
        with pytest.raises(VersionConflict):
            await namespace.put("key", "late", expect_version=2)
        with pytest.raises(VersionConflict):
            await namespace.delete("key", expect_version=2)
        # Its holder's version matches no longer, although the new entry is the first one.
        assert await namespace.put("key", "new", expect_version=0) > 2
        assert (await namespace.get("key")).value == "new"

    async def test_a_write_without_expiry_stays(self, namespace: Namespace) -> None:
        await namespace.put("key", 1, expires_at=LONG_AGO)
        await namespace.put("key", 2)
        assert (await namespace.get("key")).value == 2

    async def test_an_expiry_that_cannot_be_meant_is_refused(self, namespace: Namespace) -> None:
        with pytest.raises(InvalidValue, match="not both"):
            await namespace.put("key", 1, expires_at=FAR_AHEAD, ttl=timedelta(1))
        with pytest.raises(InvalidValue, match="zone"):
            await namespace.put("key", 1, expires_at=datetime(2200, 1, 1))  # noqa: DTZ001 - that it is refused is tested
        with pytest.raises(InvalidValue, match="at most"):
            await namespace.put("key", 1, ttl=timedelta.max)
        assert (await namespace.get("key")).status is Status.MISSING

    async def test_purging_deletes_what_has_expired_and_nothing_else(self, namespace: Namespace) -> None:
        for number in range(5):
            await namespace.put(f"old-{number}", number, expires_at=LONG_AGO)
        await namespace.put("kept", 1)
        await namespace.put("still valid", 2, expires_at=FAR_AHEAD)
        assert await namespace.purge_expired() == 5
        assert await namespace.purge_expired() == 0
        assert (await namespace.get("old-0")).status is Status.MISSING
        assert [key async for key in namespace.list_all()] == ["kept", "still valid"]

    # --- reading many

    async def test_every_key_settles_by_itself(self, namespace: Namespace) -> None:
        await namespace.put("value", 1)
        await namespace.put("expired", 2, expires_at=LONG_AGO)
        await namespace.put("malformed", 3)
        await self.damage(namespace, "malformed", '{"state": "RECEI')
        keys = ["value", "expired", "missing", "malformed", "value"]
        expected = [Status.VALUE, Status.EXPIRED, Status.MISSING, Status.MALFORMED, Status.VALUE]
        gathered = await asyncio.gather(*(namespace.get(key) for key in keys))
        assert [outcome.status for outcome in gathered] == expected
        many = [outcome async for outcome in namespace.get_many(keys)]
        assert many == gathered
        counts = ReadCounts.of(outcome.status for outcome in many)
        assert counts == ReadCounts(read=2, missing=1, expired=1, malformed=1)
        assert (counts.skipped, counts.failed) == (3, 1)

    @pytest.mark.parametrize("text", ["", "{", "NaN", "[Infinity]", '"\\ud8"', "1 2", "[" * 100_000, "9" * 5000])
    async def test_a_text_that_is_not_json_is_malformed_and_its_version_is_known(
        self, namespace: Namespace, text: str
    ) -> None:
        await namespace.put("key", 1)
        await self.damage(namespace, "key", text)
        outcome = await namespace.get("key")
        assert (outcome.status, outcome.version, outcome.value) == (Status.MALFORMED, 1, None)
        assert outcome.detail
        assert await namespace.put("key", "mended", expect_version=1) == 2
        assert (await namespace.get("key")).value == "mended"

    @pytest.mark.parametrize("window", [1, 3, 2000])
    async def test_many_keys_come_in_the_order_asked(self, namespace: Namespace, window: int) -> None:
        for number in range(7):
            await namespace.put(f"key-{number}", number)
        keys = [f"key-{number}" for number in (6, 2, 9, 2, 0, 5, 1, 3, 4)]
        seen = [(outcome.key, outcome.value) async for outcome in namespace.get_many(keys, window=window)]
        assert seen == [(key, int(key[-1]) if key != "key-9" else None) for key in keys]

    async def test_keys_may_come_one_by_one(self, namespace: Namespace) -> None:
        await namespace.put("a", 1)
        await namespace.put("b", 2)

        async def keys() -> AsyncIterator[str]:
            for key in ("b", "a", "c"):
                await asyncio.sleep(0)
                yield key

        assert [outcome.value async for outcome in namespace.get_many(keys())] == [2, 1, None]
        listed = namespace.list_all()
        assert [outcome.value async for outcome in namespace.get_many(listed)] == [1, 2]

    async def test_no_keys_are_no_outcomes(self, namespace: Namespace) -> None:
        assert [outcome async for outcome in namespace.get_many([])] == []
        assert [outcome async for outcomes in namespace.scan() for outcome in outcomes] == []

    @pytest.mark.parametrize("window", [0, 1, 3, 2000])
    async def test_a_scan_has_what_is_listed_and_not_what_has_expired(self, namespace: Namespace, window: int) -> None:
        for number in range(7):
            await namespace.put(f"a:{number}", number)
        await namespace.put("a:3", "old", expires_at=LONG_AGO)
        await namespace.put("b", "another prefix")
        await self.damage(namespace, "a:5", "{")
        seen = [outcome async for outcomes in namespace.scan("a:", window=window) for outcome in outcomes]
        assert seen == [outcome async for outcome in namespace.get_many(namespace.list_all("a:"))]
        assert [outcome.value for outcome in seen] == [0, 1, 2, 4, None, 6]
        assert seen[4].status is Status.MALFORMED

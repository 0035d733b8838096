"""Contracts of artifact stores: find, page, count."""

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta, timezone
from itertools import chain, count
from typing import Any

from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import (
    After,
    BoardSummary,
    FilterConfig,
    Labelled,
    Private,
    Reader,
    TagFilter,
    Tenant,
)
from turnloom.board.spec.queries import MOST_COMPARED
from turnloom.errors import UsageError
from turnloom.testing.contracts.artifacts.samples import (
    ANN,
    BOB,
    HOSTILE,
    LATER,
    NOON,
    SECOND,
    UNNAMED,
    artifact,
    ids,
    pages,
    series,
)
from turnloom.testing.contracts.facts import TENANT, refused


class ArtifactQueryContract:
    """Filters of queries."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty artifact store."""
        raise NotImplementedError

    async def test_each_part_of_a_filter(self) -> None:
        """Types, producers, runs, correlation and partition are compared for equality."""
        async with self.fresh() as store:
            await store.put(
                TENANT,
                [
                    artifact("a", type="t.A", run="r1", correlation_id="c1", partition="p1"),
                    artifact("b", type="t.B", run="r2", correlation_id="c1", produced_by="bob"),
                    artifact("c", type="t.A", run="r1", correlation_id="c2", produced_by="bob"),
                    artifact("d", type="t.C", produced_by="c1", correlation_id="", partition=""),
                ],
            )
            questions: list[tuple[dict[str, Any], str]] = [
                ({"types": {"t.A"}}, "ac"),
                ({"types": {"t.A", "t.B", "t.X"}}, "abc"),
                ({"types": {"A"}}, ""),
                ({"produced_by": {"bob"}}, "bc"),
                ({"produced_by": {"bob", "ann", "c1"}}, "abcd"),
                ({"correlation_id": "c1"}, "ab"),
                ({"correlation_id": ""}, "d"),
                ({"runs": {"r1"}}, "ac"),
                ({"runs": {"r1", "r2", ""}}, "abc"),
                ({"partition": "p1"}, "a"),
                ({"partition": ""}, "d"),
                ({"types": {"t.A"}, "produced_by": {"bob"}, "runs": {"r1", "r2"}}, "c"),
                ({"correlation_id": "c1", "types": {"t.B", "t.C"}}, "b"),
                ({"correlation_id": "c1", "partition": ""}, ""),
            ]
            for asked, expected in questions:
                assert await ids(store, **asked) == list(expected), asked

    async def test_an_empty_set_finds_nothing(self) -> None:
        """A filter by an empty set matches nothing; it is not the absence of a filter."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a", tags={"t"}, run="r")])
            nothing: list[dict[str, Any]] = [
                *({"types": set()}, {"produced_by": set()}, {"runs": set()}),
                *({"tags": TagFilter(include=set(), match=match)} for match in ("any", "all")),
            ]
            for asked in nothing:
                assert await ids(store, **asked) == []
            assert await ids(store, tags=TagFilter(exclude=set())) == ["a"]

    async def test_tags(self) -> None:
        """`include` with any or all, and `exclude`, select artifacts by their tags."""
        async with self.fresh() as store:
            for tags in ("", "x", "y", "xy", "xyz", "z"):
                await store.put(TENANT, [artifact(f"[{tags}]", tags=set(tags))])
            questions: list[tuple[dict[str, Any], list[str]]] = [
                ({"include": {"x", "y"}}, ["[x]", "[y]", "[xy]", "[xyz]"]),
                ({"include": {"x", "y"}, "match": "all"}, ["[xy]", "[xyz]"]),
                ({"exclude": {"x", "y"}}, ["[]", "[z]"]),
                ({"include": {"x", "y"}, "exclude": {"z"}}, ["[x]", "[y]", "[xy]"]),
                ({"include": {"x", "y"}, "match": "all", "exclude": {"z"}}, ["[xy]"]),
                ({"include": {"x"}, "exclude": {"x"}}, []),
                ({"include": {"w"}}, []),
            ]
            for asked, expected in questions:
                assert await ids(store, tags=TagFilter(**asked)) == expected, asked

    async def test_type_and_tag_newest_first(self) -> None:
        """A filter by type and tag with a limit returns the newest matches."""
        async with self.fresh() as store:
            for n in range(30):
                kind, tags = f"t.{n % 2}", {"won"} if n % 3 == 0 else {"lost"}
                at = NOON + n * SECOND
                await store.put(TENANT, [artifact(str(n), type=kind, tags=tags, created_at=at)])
            wins: dict[str, Any] = {"types": {"t.0"}, "tags": TagFilter(include={"won"})}
            assert await ids(store, **wins) == ["0", "6", "12", "18", "24"]
            last = await ids(store, **wins, limit=3, order="-created_at")
            assert last == ["24", "18", "12"]
            merged = await ids(store, types={"t.0", "t.1"}, limit=4, order="-created_at")
            assert merged == ["29", "28", "27", "26"]

    async def test_the_newest_of_a_correlation(self) -> None:
        """Only what the reader may see counts, without the given ids, newest first."""
        async with self.fresh() as store:
            made = [
                artifact(id, created_at=NOON + number * SECOND, correlation_id="c1")
                for number, id in enumerate("abcd")
            ]
            others = [
                artifact("x", created_at=LATER, correlation_id="c2"),
                artifact("y", created_at=LATER),
                artifact(
                    "z",
                    created_at=LATER,
                    correlation_id="c1",
                    visibility=Private(frozenset({"bob"})),
                ),
            ]
            await store.put(TENANT, [*others, *made[2:], *made[:2]])
            await store.put("other", [artifact("o", created_at=LATER, correlation_id="c1")])

            async def newest(most: int, *without: str, reader: Reader = ANN) -> str:
                found = await store.newest("c1", reader, LATER, most, without=frozenset(without))
                return "".join(each.id for each in found)

            assert await newest(9) == "dcba"
            assert await newest(2) == "dc"
            assert await newest(2, "d", "b") == "ca"
            assert await newest(9, *"abcd") == ""
            assert await newest(3, "x", "nothing", "z") == "dcb"
            assert await newest(2, reader=BOB) == "zd"
            assert await store.newest("c2", ANN, LATER, 9) == [others[0]]
            assert not await store.newest("c3", ANN, LATER, 9)

    async def test_a_window_includes_its_ends(self) -> None:
        """A time window includes both ends, to the microsecond and in any time zone."""
        tick = timedelta(microseconds=1)
        async with self.fresh() as store:
            await store.put(
                TENANT, [artifact(f"{n}", created_at=NOON + n * tick) for n in range(-2, 3)]
            )
            assert await ids(store, since=NOON) == ["0", "1", "2"]
            assert await ids(store, until=NOON) == ["-2", "-1", "0"]
            assert await ids(store, since=NOON, until=NOON) == ["0"]
            assert await ids(store, since=NOON + tick, until=NOON) == []
            for hours in (-11, 5.5, 14):
                zone = timezone(timedelta(hours=hours))
                window: dict[str, Any] = {
                    "since": (NOON - tick).astimezone(zone),
                    "until": NOON.astimezone(zone),
                }
                assert await ids(store, **window) == ["-1", "0"]
                backwards = await ids(store, **window, order="-created_at", limit=1)
                assert backwards == ["0"]

    async def test_any_time(self) -> None:
        """The first and the last instant of the calendar are valid times."""
        async with self.fresh() as store:
            for at in (
                datetime.max.replace(tzinfo=UTC),
                datetime(2026, 1, 1, tzinfo=UTC),
                datetime(1969, 12, 31, 23, tzinfo=UTC),
                datetime.min.replace(tzinfo=UTC),
            ):
                await store.put(TENANT, [artifact(str(at.year), created_at=at)])
            assert await ids(store) == ["1", "1969", "2026", "9999"]
            assert await ids(store, until=NOON, order="-created_at") == ["2026", "1969", "1"]

    async def test_conditions_on_payloads(self) -> None:
        """Conditions compare JSON values: numbers with numbers, strings with strings."""
        payloads: dict[str, dict[str, Any]] = {
            "one": {"score": 1, "who": {"name": "ann"}, "list": [1, "x"]},
            "two": {"score": 2.5, "who": {"name": "bob"}, "list": []},
            "text": {"score": "2", "who": "ann", "list": "x1"},
            "true": {"score": True, "who": {"name": None}},
            "none": {},
        }
        async with self.fresh() as store:
            await store.put(TENANT, [artifact(id, payload=value) for id, value in payloads.items()])
            for asked, expected in (
                (("score", "eq", 1), ["one"]),
                (("score", "eq", 1.0), ["one"]),
                (("score", "eq", True), ["true"]),
                (("score", "ne", 1), ["two", "text", "true"]),
                (("score", "gt", 1), ["two"]),
                (("score", "ge", 1), ["one", "two"]),
                (("score", "lt", "3"), ["text"]),
                (("score", "le", 2.5), ["one", "two"]),
                (("score", "in", [1, "2", None]), ["one", "text"]),
                (("who.name", "eq", "ann"), ["one"]),
                (("who.name", "eq", None), ["true"]),
                (("who.name", "exists", True), ["one", "two", "true"]),
                (("who.name", "exists", False), ["text", "none"]),
                (("list", "contains", "x"), ["one", "text"]),
                (("list", "contains", 1), ["one"]),
                (("list.0", "exists", True), []),
                (("who", "eq", {"name": "bob"}), ["two"]),
            ):
                assert await ids(store, where=[asked]) == expected, asked
            both = [("score", "ge", 1), ("who.name", "eq", "bob")]
            assert await ids(store, where=both, limit=1) == ["two"]

    async def test_any_name(self) -> None:
        """Any string is a valid name, and matches only itself."""
        async with self.fresh() as store:
            for word in HOSTILE:
                fields = {"correlation_id": word, "run": word, "partition": word}
                await store.put(
                    TENANT, [artifact(word, type=word, produced_by=word, tags={word}, **fields)]
                )
            for word in HOSTILE:
                questions: list[dict[str, Any]] = [
                    *({"types": {word}}, {"produced_by": {word}}, {"runs": {word}}),
                    *({"correlation_id": word}, {"partition": word}),
                    {"tags": TagFilter(include={word})},
                ]
                for asked in questions:
                    assert await ids(store, **asked) == [word], asked


class PagingContract:
    """Order and pages of queries."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty artifact store."""
        raise NotImplementedError

    async def test_time_orders_and_then_coming(self) -> None:
        """Artifacts of the same instant stay in order of arrival, in both directions."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("late", created_at=LATER)])
            await store.put(TENANT, [artifact(id) for id in ("z", "a", "m")])
            await store.put(TENANT, [artifact("early", created_at=NOON - SECOND)])
            await store.put(TENANT, [artifact("b")])
            order = ["early", "z", "a", "m", "b", "late"]
            assert await ids(store) == order
            assert await ids(store, order="-created_at") == order[::-1]
            assert await ids(store, limit=2) == order[:2]
            assert await ids(store, limit=3, order="-created_at") == order[:2:-1]

    async def test_pages_have_no_gap_and_no_repeat(self) -> None:
        """Pages of any size make up the whole result, in both orders."""
        async with self.fresh() as store:
            await store.put(
                TENANT, [artifact(str(n), created_at=NOON + n // 4 * SECOND) for n in range(23)]
            )
            for order in ("created_at", "-created_at"):
                whole = await ids(store, order=order)
                for limit in (1, 4, 22, 23, 24):
                    found = await pages(store, FilterConfig(limit=limit, order=order))
                    assert list(chain.from_iterable(found)) == whole
                    assert all(len(page) == limit for page in found[:-1]) and found[-1]

    async def test_a_page_compares_a_bounded_number(self) -> None:
        """A page with few matches ends early with a cursor, and the pages make up the whole
        result."""
        async with self.fresh() as store:
            rows = series(MOST_COMPARED + 2, visibility=Private({"ann"}))
            await store.put(TENANT, [*rows, artifact("last", created_at=rows[-1].created_at)])
            for wanted, limit in ((["last", "9", "7"], 1), ([], None)):
                found = await pages(
                    store,
                    FilterConfig(where=[("id", "in", [*wanted])], limit=limit, order="-created_at"),
                )
                assert len(found) > 1 and list(chain.from_iterable(found)) == wanted
            whole = await pages(store, FilterConfig())
            assert len(whole[0]) <= MOST_COMPARED and len(whole) > 1
            assert sum(map(len, whole)) == MOST_COMPARED + 3
            # Artifacts that the reader may not see do not add pages.
            assert await pages(store, FilterConfig(), BOB) == [["last"]]

    async def test_pages_during_writes(self) -> None:
        """Artifacts that exist when paging starts are returned once, despite writes between
        pages."""
        async with self.fresh() as store:
            for order in ("created_at", "-created_at"):
                before = await ids(store, order=order)
                await store.put(TENANT, [artifact(f"{order} {n}") for n in range(10)])
                there = set(await ids(store)) - set(before)
                found: list[str] = []
                filter, cursor = FilterConfig(limit=3, order=order), ""
                for n in count():
                    page = await store.query(filter, ANN, LATER, cursor=cursor or None)
                    found += [item.id for item in page.items]
                    if page.cursor is None:
                        break
                    cursor = page.cursor
                    at = NOON + (n % 3 - 1) * SECOND
                    await store.put(TENANT, [artifact(f"{order} meanwhile {n}", created_at=at)])
                assert len(found) == len(set(found)) and there | set(before) <= set(found)

    async def test_a_cursor_belongs_to_its_filter_and_reader(self) -> None:
        """A cursor that is invalid, or of another filter or reader, is rejected; the limit may
        change."""
        async with self.fresh() as store:
            await store.put(TENANT, [*series(9), artifact("hidden", visibility=Private({"ann"}))])
            page = await store.query(FilterConfig(limit=3), ANN, LATER)
            rest = await store.query(FilterConfig(limit=9), ANN, LATER, cursor=page.cursor)
            assert len(rest.items) == 7 and rest.cursor is None
            for asked in (FilterConfig(limit=3, order="-created_at"), FilterConfig(types={"x"})):
                with refused(UsageError):
                    await store.query(asked, ANN, LATER, cursor=page.cursor)
            for nonsense in ("", "x", "é", "bnVsbA==", page.cursor and page.cursor[:-6]):
                with refused(UsageError):
                    await store.query(FilterConfig(limit=3), ANN, LATER, cursor=nonsense)
            with refused(UsageError):
                await store.query(FilterConfig(limit=3), BOB, LATER, cursor=page.cursor)
            hidden = await store.query(FilterConfig(limit=2), ANN, LATER)
            assert [item.id for item in hidden.items] == ["0", "hidden"]
            with refused(UsageError):
                await store.query(FilterConfig(limit=2), BOB, LATER, cursor=hidden.cursor)


class CountingContract:
    """Summaries of queries."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty artifact store."""
        raise NotImplementedError

    async def test_an_empty_board_has_an_empty_summary(self) -> None:
        """An empty board has empty counts; nothing is listed with a count of zero."""
        nothing = BoardSummary(total=0, by_type={}, by_producer={}, by_visibility={}, by_tag={})
        async with self.fresh() as store:
            assert await store.summary(FilterConfig(), ANN, LATER) == nothing
            await store.put(TENANT, [artifact("a")])
            assert await store.summary(FilterConfig(types=set()), ANN, LATER) == nothing

    async def test_each_reader_counts_its_own(self) -> None:
        """A summary counts visible artifacts by type, producer, kind of visibility and tag."""
        async with self.fresh() as store:
            await fill(store)
            assert await store.summary(FilterConfig(), ANN, NOON) == BoardSummary(
                total=4,
                by_type={"t.A": 3, "t.B": 1},
                by_producer={"ann": 2, "bob": 1, "eve": 1},
                by_visibility={"public": 1, "labelled": 1, "tenant": 1, "after": 1},
                by_tag={"x": 2, "y": 1},
            )
            assert await store.summary(FilterConfig(), BOB, NOON) == BoardSummary(
                total=4,
                by_type={"t.A": 3, "t.B": 1},
                by_producer={"ann": 1, "bob": 2, "eve": 1},
                by_visibility={"public": 1, "private": 1, "tenant": 1, "after": 1},
                by_tag={"x": 1, "z": 1},
            )
            assert (await store.summary(FilterConfig(), UNNAMED, NOON)).total == 3
            assert (await store.summary(FilterConfig(), ANN, LATER)).total == 5

    async def test_summaries_use_filters(self) -> None:
        """A summary uses every part of a filter except its limit and order."""
        async with self.fresh() as store:
            await fill(store)
            for asked, total in (
                (FilterConfig(types={"t.A"}), 3),
                (FilterConfig(tags=TagFilter(include={"x"}, exclude={"y"})), 1),
                (FilterConfig(where=[("id", "in", ["public", "tenant"])]), 2),
                (FilterConfig(types={"t.A"}, limit=1, order="-created_at"), 3),
            ):
                counted = await store.summary(asked, ANN, NOON)
                assert counted.total == sum(counted.by_type.values()) == total


async def fill(store: ArtifactStore) -> None:
    """Add one artifact of each visibility, and one that becomes visible later."""
    bobs, soon = Private({"bob"}), After(NOON + SECOND)
    await store.put(
        TENANT,
        [
            artifact("public", type="t.A", tags={"x"}),
            artifact("private", type="t.A", tags={"z"}, produced_by="bob", visibility=bobs),
            artifact("labelled", type="t.A", tags={"x", "y"}, visibility=Labelled({"audit"})),
            artifact("tenant", type="t.B", produced_by="eve", visibility=Tenant("acme")),
            artifact(
                "opened", type="t.A", produced_by="bob", visibility=After(NOON, Tenant("acme"))
            ),
            artifact("closed", type="t.C", tags={"x"}, visibility=soon),
        ],
    )

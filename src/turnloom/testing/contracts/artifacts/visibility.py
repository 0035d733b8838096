"""Contracts of artifact stores: visibility and tenants."""

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import (
    After,
    Artifact,
    Consumption,
    Envelope,
    FilterConfig,
    Labelled,
    Private,
    Public,
    Reader,
    Shared,
    TagFilter,
    Tenant,
    Visibility,
)
from turnloom.errors import ArtifactExists
from turnloom.testing.contracts.artifacts.samples import (
    ANN,
    BOB,
    LATER,
    NOON,
    SECOND,
    SEEN_BY,
    UNNAMED,
    artifact,
    consumption,
    ids,
    series,
)
from turnloom.testing.contracts.facts import OTHER, TENANT, refused


class ArtifactVisibilityContract:
    """Visibility of artifacts."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty artifact store."""
        raise NotImplementedError

    async def test_each_reader_sees_its_own(self) -> None:
        """Every query and `get` show a reader the same artifacts."""
        async with self.fresh() as store:
            for n, (visibility, _) in enumerate(SEEN_BY):
                await store.put(
                    TENANT, [artifact(str(n), visibility=visibility, tags={"t"}, run="r")]
                )
            for reader in (ANN, BOB, UNNAMED):
                seen = [str(n) for n, (_, readers) in enumerate(SEEN_BY) if reader in readers]
                questions: list[dict[str, Any]] = [
                    *({}, {"types": {"test.Note"}}, {"runs": {"r"}, "produced_by": {"ann"}}),
                    *({"tags": TagFilter(include={"t"})}, {"tags": TagFilter(exclude={"u"})}),
                    {"where": [("id", "exists", True)]},
                ]
                for asked in questions:
                    assert await ids(store, reader, NOON, **asked) == seen
                for n, (visibility, readers) in enumerate(SEEN_BY):
                    found = await store.get(str(n), reader, NOON)
                    assert (found is not None) == (reader in readers)
                    assert found is None or found.visibility == visibility

    async def test_a_reader_without_names_has_no_names(self) -> None:
        """An empty agent name matches no agent, and agents, labels and tenants of the same name
        differ."""
        async with self.fresh() as store:
            await store.put(
                TENANT,
                [
                    artifact("a", visibility=Private({"ann"})),
                    artifact("b", visibility=Labelled({"staff"})),
                    artifact("c", visibility=Tenant("globex")),
                ],
            )
            for agent in ("", "acme", "globex", "staff"):
                assert await ids(store, Reader(agent, tenant=TENANT)) == []
            assert await ids(store, Reader(labels={"ann", "globex"}, tenant=TENANT)) == []
            for stranger in ("", "ann", "staff", "globex"):
                assert await ids(store, Reader("ann", {"staff"}, stranger)) == []

    async def test_a_limit_counts_visible_artifacts(self) -> None:
        """A limit counts visible artifacts only."""
        hidden = [Private({"bob"}), Labelled({"staff", "secret"}), Tenant("globex")]
        hidden += [After(NOON + timedelta(days=1), Public())]
        async with self.fresh() as store:
            for part, visibility in enumerate(hidden):
                await store.put(
                    TENANT, [artifact(f"{part}.{n}", visibility=visibility) for n in range(100)]
                )
            await store.put(TENANT, [artifact(str(n), tags={"t"}) for n in range(3)])
            await store.put(
                TENANT, [artifact(f"behind {n}", visibility=hidden[1]) for n in range(100)]
            )
            for order in ("created_at", "-created_at"):
                asked = FilterConfig(limit=3, order=order)
                page = await store.query(asked, ANN, NOON, count=True)
                assert sorted(item.id for item in page.items) == ["0", "1", "2"]
                assert page.total == 3 and page.cursor is None

    async def test_an_instant_opens_and_stays_open(self) -> None:
        """An artifact with an instant is invisible before it, and visible to its readers from then
        on."""
        at, tick = NOON + 5 * SECOND, timedelta(microseconds=1)
        async with self.fresh() as store:
            await store.put(
                TENANT,
                [
                    artifact("a", visibility=After(at, Private({"ann"}))),
                    artifact("b", visibility=After(at - SECOND, After(at, Public()))),
                ],
            )
            for moment in (NOON, at - tick):
                assert await ids(store, ANN, moment) == []
            for moment in (at, at + tick):
                assert await ids(store, ANN, moment) == ["a", "b"]
                assert await ids(store, BOB, moment) == ["b"]

    async def test_upcoming_instants(self) -> None:
        """`upcoming` returns future instants in order, each once."""
        async with self.fresh() as store:
            await store.put(TENANT, series(3))
            for n, second in enumerate((30, 10, 20, 10, -10, 0)):
                opening = After(NOON, After(NOON + second * SECOND, Tenant("acme")))
                await store.put(TENANT, [artifact(f"later {n}", visibility=opening)])
            expected = [NOON + second * SECOND for second in (10, 20, 30)]
            assert list(await store.upcoming(TENANT, NOON, 9)) == expected
            assert list(await store.upcoming(TENANT, NOON, 2)) == expected[:2]
            assert list(await store.upcoming(TENANT, expected[0], 9)) == expected[1:]
            assert list(await store.upcoming(TENANT, expected[0] - SECOND, 1)) == expected[:1]
            assert list(await store.upcoming(TENANT, expected[2], 9)) == []


OURS = Reader("ann", {"staff"}, TENANT)
THEIRS = Reader("ann", {"staff"}, OTHER)
DEVELOPER = Reader(tenant=TENANT, role="developer")
KINDS: tuple[Visibility, ...] = (
    Public(),
    Private({"ann"}),
    Labelled({"staff"}),
    Tenant(TENANT),
    Tenant(OTHER),
    After(NOON, Public()),
)


class TenantsContract:
    """Tenants in one artifact store."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty artifact store."""
        raise NotImplementedError

    async def test_tenants_are_separate(self) -> None:
        """Tenants may have artifacts with the same id; each finds only its own."""
        async with self.fresh() as store:
            for tenant in (TENANT, OTHER):
                await store.put(tenant, [_of(tenant, str(n), v) for n, v in enumerate(KINDS)])
                await store.consume(tenant, [consumption("0", agent=tenant)])
            for reader in (OURS, THEIRS):
                page = await store.query(FilterConfig(), reader, LATER, count=True, embed_meta=True)
                assert page.total == len(page.items) == len(KINDS) - 1
                assert {item.produced_by for item in page.items} == {reader.tenant}
                found = await store.get("0", reader, LATER)
                assert found is not None and found.produced_by == reader.tenant
                counted = await store.summary(FilterConfig(), reader, LATER)
                assert counted.by_producer == {reader.tenant: len(KINDS) - 1}
                assert [r.tenant for r in await store.find(reader.tenant, "0")] == [reader.tenant]
                taken = {each.agent for item in page.items for each in _consumptions(item)}
                assert taken == {reader.tenant}

    async def test_other_tenants_are_invisible(self) -> None:
        """Ids and instants of another tenant are invisible, and its ids are free."""
        async with self.fresh() as store:
            opening = After(LATER + SECOND, Public())
            await store.put(OTHER, [_of(OTHER, "a"), _of(OTHER, "b", opening)])
            assert await ids(store, OURS) == []
            assert await store.get("a", OURS, LATER) is None
            assert not await store.find(TENANT, "a")
            assert list(await store.upcoming(TENANT, NOON, 9)) == []
            assert list(await store.upcoming(OTHER, NOON, 9)) == [LATER + SECOND]
            await store.put(TENANT, [_of(TENANT, "a")])
            with refused(ArtifactExists):
                await store.put(TENANT, [artifact("a", version=2)])

    async def test_the_empty_name_is_a_tenant(self) -> None:
        """The empty string is a tenant like any other."""
        async with self.fresh() as store:
            await store.put("", [_of("", "a")])
            await store.put(TENANT, [_of(TENANT, "b")])
            assert await ids(store, Reader(tenant="")) == ["a"]
            assert await ids(store, OURS) == ["b"]

    async def test_shared_artifacts_are_visible_to_all(self) -> None:
        """Every tenant finds shared artifacts, without their consumptions."""
        async with self.fresh() as store:
            later = After(LATER + SECOND, Shared())
            await store.put(OTHER, [_of(OTHER, "a", Shared()), _of(OTHER, "later", later)])
            await store.consume(OTHER, [consumption("a")])
            for reader in (OURS, THEIRS, Reader(tenant=""), DEVELOPER):
                assert [item.produced_by for item in await _all(store, reader)] == [OTHER]
                assert (await store.summary(FilterConfig(), reader, LATER)).total == 1
                assert list(await store.upcoming(reader.tenant, NOON, 9)) == [LATER + SECOND]
            assert await ids(store, THEIRS, LATER + SECOND) == ["a", "later"]
            [seen] = await _all(store, OURS)
            assert _consumptions(seen) == ()
            [own] = await _all(store, THEIRS)
            assert len(_consumptions(own)) == 1

    async def test_a_shared_id_does_not_hide_an_own_one(self) -> None:
        """For a shared id, `get` returns the tenant's own artifact; a query returns all of them."""
        async with self.fresh() as store:
            for tenant in (TENANT, OTHER, "third"):
                await store.put(tenant, [_of(tenant, "same", Shared())])
            await store.put(OTHER, [_of(OTHER, "mine")])
            for reader, own in ((OURS, TENANT), (THEIRS, OTHER)):
                found = await store.get("same", reader, LATER)
                assert found is not None and found.produced_by == own
            assert await _paged(store, OURS) == [TENANT, OTHER, "third"]
            assert await _paged(store, THEIRS) == [TENANT, OTHER, "third", OTHER]

    async def test_a_developer_reads_all_of_its_tenant(self) -> None:
        """A developer reads everything of their tenant, and only shared artifacts of others."""
        hidden: list[Visibility] = [
            *KINDS,
            Private({"eve"}),
            Labelled({"secret"}),
            After(LATER + SECOND, Private({"eve"})),
        ]
        async with self.fresh() as store:
            for tenant in (TENANT, OTHER):
                await store.put(tenant, [_of(tenant, str(n), v) for n, v in enumerate(hidden)])
            await store.put(OTHER, [_of(OTHER, "shared", Shared())])
            page = await store.query(FilterConfig(), DEVELOPER, NOON, count=True)
            assert page.total == len(page.items) == len(hidden) + 1
            assert await _paged(store, DEVELOPER) == [TENANT] * len(hidden) + [OTHER]
            counted = await store.summary(FilterConfig(), DEVELOPER, NOON)
            assert counted.by_producer == {TENANT: len(hidden), OTHER: 1}
            for n in range(len(hidden)):
                found = await store.get(str(n), DEVELOPER, NOON)
                assert found is not None and found.produced_by == TENANT

    async def test_artifacts_shared_later_do_not_end_a_page(self) -> None:
        """Artifacts that other tenants will share later do not end a developer's page."""
        async with self.fresh() as store:
            soon = After(LATER + SECOND, Shared())
            for tenant in (OTHER, TENANT):
                await store.put(tenant, [_of(tenant, f"{tenant} {n}", soon) for n in range(3)])
            assert await _paged(store, DEVELOPER) == [TENANT] * 3
            page = await store.query(FilterConfig(), DEVELOPER, NOON, count=True)
            assert page.total == len(page.items) == 3


def _of(tenant: str, id: str, visibility: Visibility | None = None) -> Artifact:
    """An artifact that names its tenant."""
    canary = {"of": tenant}
    made_by, seen = tenant or "nobody", visibility or Public()
    return artifact(id, payload=canary, produced_by=made_by, visibility=seen)


def _consumptions(item: Artifact) -> tuple[Consumption, ...]:
    assert isinstance(item, Envelope)
    return item.consumptions


async def _all(store: ArtifactStore, reader: Reader) -> tuple[Artifact, ...]:
    return (await store.query(FilterConfig(), reader, LATER, embed_meta=True)).items


async def _paged(store: ArtifactStore, reader: Reader) -> list[str]:
    """The producers of all artifacts that a reader finds, read one artifact per page."""
    found: list[str] = []
    cursor = None
    while True:
        page = await store.query(FilterConfig(limit=1), reader, LATER, cursor=cursor)
        found += [item.produced_by for item in page.items]
        cursor = page.cursor
        if cursor is None:
            return found

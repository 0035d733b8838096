"""What two tenants do to one store under the same ids, and every way to read it.

Every value that is written carries the canary of its tenant; what is shared carries another text.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.tenants import beside
from tests.tenants.deeds import IDS, Deed, canary
from turnloom.assembly.spec.retrieval import Chunk, Probe, StoredDocument
from turnloom.board.logic.rows import write_visibility
from turnloom.board.spec import (
    After,
    Artifact,
    FilterConfig,
    Labelled,
    Private,
    Public,
    Reader,
    Shared,
    TagFilter,
    Tenant,
    Visibility,
    is_shared,
)
from turnloom.errors import ArtifactExists, Conflict, RunBusy, UsageError
from turnloom.guards.spec import Observation, Pool
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import Removal, Reply, RunCopy, StoredPlan
from turnloom.testing.contracts.artifacts.samples import LATER, NOON, SECOND, artifact, consumption
from turnloom.testing.contracts.facts import Noted, event, key

# Names that a careless key joins, folds, escapes or takes for none or for several.
NAMES = ("ann", "ANN", "", "a", "a/b", "%", "_", "⟨", "it's", "caf\u00e9", "cafe\u0301", "local")
# The id under which both begin branches.
BRANCH = "b"
AGENTS = ("eve", "Eve")


def visibilities(names: Sequence[str]) -> st.SearchStrategy[Visibility]:
    """All kinds, nested; those that name a tenant name one of these."""
    named = [Tenant(name) for name in names if name]
    flat: list[Visibility] = [Public(), Shared(), Private(set(AGENTS[:1])), Labelled({"staff"})]
    opening = st.sampled_from([NOON, NOON + SECOND, LATER, LATER + SECOND])
    return st.recursive(
        st.sampled_from([*flat, *named]),
        lambda inner: st.builds(After, opening, inner),
        max_leaves=3,
    )


@st.composite
def scenes(draw: Any, kinds: Sequence[str]) -> tuple[list[str], list[Deed]]:
    """Two tenants, and what they do one after the other."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=2, unique=True))
    # few kinds and ids a scene, so that they meet
    some = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=4, unique=True))
    ids = draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=2, unique=True))
    deed = st.builds(
        Deed,
        st.integers(0, 1),
        st.sampled_from(some),
        st.sampled_from(ids),
        st.integers(1, 3),
        visibilities(names),
    )
    return names, draw(st.lists(deed, min_size=12, max_size=48))


async def _append(store: Any, tenant: str, deed: Deed) -> Any:
    run = key(deed.id, tenant)
    position, noted = len(await store.log.read(run)), Noted(canary(tenant))
    batch = [event(deed.id, position + n + 1, noted) for n in range(deed.number)]
    return list(await store.log.append(run, batch, position))


async def _branch(store: Any, tenant: str, deed: Deed) -> Any:
    """A branch of another run; the run may be there, and the origin may not."""
    at = len(await store.log.read(key(deed.id, tenant)))
    own = [event(BRANCH, at + n + 1, Noted(canary(tenant))) for n in range(deed.number)]
    return list(await store.log.branch(key(BRANCH, tenant), deed.id, at, own))


async def _offer(store: Any, tenant: str, deed: Deed) -> Any:
    message = Reply("q", canary(tenant), canary(tenant))
    # some are in the log already, by the ids that events have
    return await store.inbox.offer(key(deed.id, tenant), f"{deed.id}/{deed.number}", message)


async def _save(store: Any, tenant: str, deed: Deed) -> Any:
    state = canary(tenant).encode()
    return await store.snapshots.save(key(deed.id, tenant), deed.number, state)


async def _keep_result(store: Any, tenant: str, deed: Deed) -> Any:
    until = None if deed.number == 1 else NOON + deed.number * SECOND
    return await store.results.keep(tenant, deed.id, {"said": canary(tenant)}, NOON, until)


async def _keep_plan(store: Any, tenant: str, deed: Deed) -> Any:
    said = canary(tenant)
    return await store.plans.keep(tenant, deed.id, StoredPlan(said, said, said))


async def _put(store: Any, tenant: str, deed: Deed) -> Any:
    mark = "for all" if is_shared(deed.visibility) else canary(tenant)
    made = artifact(
        deed.id,
        payload={"said": mark},
        produced_by=mark,
        correlation_id=mark,
        tags={mark},
        partition=mark,
        created_at=NOON + deed.number * SECOND,
        visibility=deed.visibility,
    )
    return await store.artifacts.put(tenant, [made])


async def _consume(store: Any, tenant: str, deed: Deed) -> Any:
    said = canary(tenant)
    taken = consumption(deed.id, agent=said, subscription=said, turn=deed.number)
    return await store.artifacts.consume(tenant, [taken])


async def _observe(store: Any, tenant: str, deed: Deed) -> Any:
    pool = Pool(tenant, "Desk", deed.id)
    seen = [
        Observation(deed.id, f"{deed.number}{agent}", pool, agent, deed.number / 4, 0.25)
        for agent in (AGENTS[0], canary(tenant))
    ]
    return await store.beliefs.observe(seen)


async def _replace(store: Any, tenant: str, deed: Deed) -> Any:
    shared = is_shared(deed.visibility)
    mark = "for all" if shared else canary(tenant)
    visibility = "" if deed.visibility == Public() else write_visibility(deed.visibility)
    chunks = [Chunk(mark, (0.6, 0.8)), Chunk(mark, (1.0, 0.0))]
    said = f'{{"said":"{mark}"}}'
    entry = StoredDocument(deed.id, mark, said, [mark], chunks, visibility, shared)
    return await store.vectors.replace(tenant, sorted({*IDS[: deed.number - 1], deed.id}), [entry])


async def _write_copy(store: Any, tenant: str, deed: Deed) -> Any:
    """A run that comes from another store, or more of it."""
    run = key(deed.id, tenant)
    position, noted = len(await store.log.read(run)), Noted(canary(tenant))
    batches = tuple((event(deed.id, position + n + 1, noted),) for n in range(deed.number))
    return await store.copies.write(run, RunCopy(batches))


async def _add_removal(store: Any, tenant: str, deed: Deed) -> Any:
    said = canary(tenant)
    removal = Removal(NOON, said, deed.id, runs=deed.number, others={said: 1})
    return await store.removals.add(tenant, removal)


async def _remember(store: Any, tenant: str, deed: Deed) -> Any:
    return await store.removals.remember(key(deed.id, tenant))


# What writes through each port; a claim is held to the end of its scene.
WRITERS: dict[str, Callable[[Any, str, Deed], Awaitable[Any]]] = {
    "EventLog.append": _append,
    "BranchingLog.branch": _branch,
    "Inbox.offer": _offer,
    "Snapshots.save": _save,
    "Results.keep": _keep_result,
    "Plans.keep": _keep_plan,
    "Artifacts.put": _put,
    "Artifacts.consume": _consume,
    "BeliefStore.observe": _observe,
    "VectorStore.replace": _replace,
    "Copies.write": _write_copy,
    "Removals.add": _add_removal,
    "Removals.remember": _remember,
    **beside.WRITERS,
}
CLAIM = "Claims.claim"


async def act(store: Any, names: Sequence[str], deeds: Sequence[Deed], held: AsyncExitStack) -> Any:
    """Do what a scene says; what the store says to each deed."""
    said: list[Any] = []
    for deed in deeds:
        tenant = names[deed.who]
        try:
            if deed.kind == CLAIM:
                await held.enter_async_context(store.claims.claim(key(deed.id, tenant)))
                said.append("held")
            else:
                said.append(await WRITERS[deed.kind](store, tenant, deed))
        except (ArtifactExists, Conflict, RunBusy, UsageError) as error:
            said.append(type(error).__name__)
    return said


async def _read(store: Any, tenant: str, names: Sequence[str]) -> Any:
    ids = (*IDS, BRANCH)
    return [list(await store.log.read(key(id, tenant), n)) for id in ids for n in (0, 1)]


async def _batch_end(store: Any, tenant: str, names: Sequence[str]) -> Any:
    found: list[Any] = []
    for id in (*IDS, BRANCH):
        for seq in (1, 3):
            try:
                found.append(await store.log.batch_end(key(id, tenant), seq))
            except UsageError as error:
                found.append(str(error))
    return found


async def _subscribe(store: Any, tenant: str, names: Sequence[str]) -> Any:
    """What is heard of each run, up to an event that is appended meanwhile."""
    heard: list[Any] = []
    for id in IDS:
        run = key(id, tenant)
        last = len(await store.log.read(run)) + 1
        async with aclosing(store.log.subscribe(run)) as events:
            await store.log.append(run, [event(id, last, Noted(canary(tenant)))], last - 1)
            async for each in events:
                heard.append(each)
                if each.seq == last:
                    break
    return heard


async def _ends(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [await store.log.ends(RunKey(tenant, id)) for id in IDS]


async def _runs(store: Any, tenant: str, names: Sequence[str]) -> Any:
    all_of_them = await store.log.runs(tenant, 1000)
    return [list(all_of_them), list(await store.log.runs(tenant, 1, unfinished=True))]


async def _named(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [list(await store.log.named(tenant, id, 1000)) for id in ("", *IDS)]


async def _pending(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [list(await store.inbox.pending(key(id, tenant))) for id in IDS]


async def _held(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [bool(await store.claims.held(key(id, tenant))) for id in IDS]


async def _load(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [await store.snapshots.load(key(id, tenant)) for id in IDS]


async def _find_result(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [await store.results.find(tenant, id, NOON) for id in IDS]


async def _find_plan(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [await store.plans.find(tenant, id) for id in IDS]


async def _find(store: Any, tenant: str, names: Sequence[str]) -> Any:
    found = [each for id in IDS for each in await store.artifacts.find(tenant, id)]
    return [(each.at, each.tenant, each.visibility, each.data) for each in found]


async def _get(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [
        await store.artifacts.get(id, reader, at)
        for reader in readers(tenant)
        for at in (NOON, LATER)
        for id in IDS
    ]


async def _query(store: Any, tenant: str, names: Sequence[str]) -> Any:
    """Whole, and page by page; also what asks for the other's texts."""
    asked = [FilterConfig(), *(FilterConfig(produced_by={canary(name)}) for name in names)]
    asked += [FilterConfig(tags=TagFilter(include={canary(name)})) for name in names]
    found: list[Any] = []
    for reader in readers(tenant):
        for filter in asked:
            page = await store.artifacts.query(filter, reader, LATER, embed_meta=True, count=True)
            found.append((page.items, page.total))
        found.append(await _pages(store, reader))
    return found


async def _pages(store: Any, reader: Reader) -> list[Artifact]:
    found: list[Artifact] = []
    one, cursor = FilterConfig(limit=1), None
    while True:
        page = await store.artifacts.query(one, reader, LATER, embed_meta=True, cursor=cursor)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found


async def _newest(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [
        await store.artifacts.newest(name, reader, LATER, 9)
        for reader in readers(tenant)
        for name in (*names, *IDS)
    ]


async def _summary(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [
        await store.artifacts.summary(FilterConfig(), reader, at)
        for reader in readers(tenant)
        for at in (NOON, LATER)
    ]


async def _upcoming(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [list(await store.artifacts.upcoming(tenant, at, 9)) for at in (NOON, LATER)]


async def _consumptions(store: Any, tenant: str, names: Sequence[str]) -> Any:
    found = await store.artifacts.consumptions(tenant, IDS)
    return sorted(found, key=lambda each: (each.artifact, each.turn))


async def _beliefs(store: Any, tenant: str, names: Sequence[str]) -> Any:
    asked = [*AGENTS, *map(canary, names)]
    pools = [Pool(tenant, "Desk", id) for id in IDS]
    return [sorted((await store.beliefs.beliefs(pool, asked)).items()) for pool in pools]


async def _digests(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return sorted((await store.vectors.digests(tenant, IDS)).items())


async def _visibilities(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [sorted(each) for each in await store.vectors.visibilities(tenant)]


async def _is_empty(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return await store.vectors.is_empty(tenant)


async def _nearest(store: Any, tenant: str, names: Sequence[str]) -> Any:
    """All that is near, and what has a text of one of the two."""
    shared = (await store.vectors.visibilities(tenant)).shared
    asked = [(), *([[canary(name)]] for name in names)]
    vector = (1.0, 0.0)
    probes = [Probe(tenant, vector, (), 9, 0.0, each, (), shared) for each in asked]
    found = [result for each in probes for result in await store.vectors.nearest(each)]
    return [msgspec.structs.replace(each, score=round(each.score, 3)) for each in found]


async def _having(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [sorted(await store.vectors.having(tenant, canary(name))) for name in names]


async def _verify(store: Any, tenant: str, names: Sequence[str]) -> Any:
    every = [each async for each in store.verifier.verify(tenant)]
    one = [each for id in IDS async for each in store.verifier.verify(tenant, id)]
    return [[(each.run, each.events) for each in found] for found in (every, one)]


async def _read_copy(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [await store.copies.read(key(id, tenant)) for id in (*IDS, BRANCH)]


async def _recent(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return list(await store.removals.recent(tenant, 100))


async def _is_removed(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [await store.removals.is_removed(key(id, tenant)) for id in IDS]


# Every way to read a store, as a tenant, with every id that there is.
READERS: dict[str, Callable[[Any, str, Sequence[str]], Awaitable[Any]]] = {
    "EventLog.read": _read,
    "EventLog.ends": _ends,
    "BranchingLog.batch_end": _batch_end,
    "EventLog.runs": _runs,
    "EventLog.named": _named,
    "Inbox.pending": _pending,
    "Claims.held": _held,
    "Snapshots.load": _load,
    "Results.find": _find_result,
    "Plans.find": _find_plan,
    "Artifacts.find": _find,
    "Artifacts.get": _get,
    "Artifacts.query": _query,
    "Artifacts.newest": _newest,
    "Artifacts.summary": _summary,
    "Artifacts.upcoming": _upcoming,
    "Artifacts.consumptions": _consumptions,
    "BeliefStore.beliefs": _beliefs,
    "Verifier.verify": _verify,
    "VectorStore.digests": _digests,
    "VectorStore.visibilities": _visibilities,
    "VectorStore.is_empty": _is_empty,
    "VectorStore.nearest": _nearest,
    "PrunableStore.having": _having,
    "Copies.read": _read_copy,
    "Removals.recent": _recent,
    "Removals.is_removed": _is_removed,
    **beside.READERS,
    "EventLog.subscribe": _subscribe,  # the last one, as it appends
}


def readers(tenant: str) -> list[Reader]:
    """Those of a tenant who may see the most."""
    agents = [Reader(agent, {"staff"}, tenant) for agent in AGENTS[:1]]
    return [*agents, Reader(tenant=tenant), Reader(tenant=tenant, role="developer")]


async def look(store: Any, tenant: str, names: Sequence[str], ports: Sequence[str]) -> Any:
    """What a tenant finds, by every way to read some ports."""
    return {
        name: await read(store, tenant, names)
        for name, read in READERS.items()
        if name.partition(".")[0] in ports
    }


def betrayed(found: dict[str, Any], names: Sequence[str], who: int) -> list[str]:
    """The ways to read that give one of two tenants what is the other's."""
    other = canary(names[1 - who]).encode()
    return [name for name, each in found.items() if other in msgspec.msgpack.encode(each)]

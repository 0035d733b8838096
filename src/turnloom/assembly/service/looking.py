"""Looking around for a turn: collections are searched and providers are asked, once each."""

from collections.abc import Mapping, Sequence
from typing import cast

import anyio

from turnloom.assembly.events import ContextGathered, ProviderFailed, RetrievalSearched
from turnloom.assembly.logic.gathered import gathered_fact
from turnloom.assembly.logic.retrieval import admits
from turnloom.assembly.logic.searched import Found, Sought, known_as, searched_fact
from turnloom.assembly.service.gathering import gather
from turnloom.assembly.service.situations import Situation, expect
from turnloom.assembly.spec import Chosen
from turnloom.assembly.spec.retrieval import Results
from turnloom.board.spec import Public
from turnloom.errors import ContextUnavailable
from turnloom.log.spec import Fact

PUBLIC = Public()


async def search_all(
    sought: Mapping[str, Sought], situation: Situation
) -> dict[str, RetrievalSearched]:
    """What is found under each key; the searches go on side by side.

    Raises:
        Exception: what the first search that fails raises, as it is; the others are given up.
    """
    found: dict[str, RetrievalSearched] = {}
    failed: list[Exception] = []

    async def search(key: str, each: Sought) -> None:
        try:
            found[key] = await _search_once(key, each, situation)
        except Exception as error:  # noqa: BLE001 - it is raised below
            failed.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for key, each in sought.items():
            tasks.start_soon(search, key, each)
    if failed:
        raise failed[0]
    return found


async def _search_once(key: str, sought: Sought, situation: Situation) -> RetrievalSearched:
    """What a search finds for the reader: what it found before in the run, unless that was for
    somebody else and may have been another thing for this one."""
    reader = known_as(situation.reader)

    async def effect() -> Sequence[Fact]:
        begun = anyio.current_time()
        # As many again, whatever they score: what was left out is on record with its score.
        wanted = sought._replace(top_k=2 * sought.top_k, min_relevance=0.0)
        results = await situation.search(*wanted)
        micros = round((anyio.current_time() - begun) * 1_000_000)
        told = results if isinstance(results, Results) else Results(results)
        whose = "" if told.for_all else reader
        least = told.min_relevance if sought.min_relevance is None else sought.min_relevance
        seen = [each for each in results if _may_be_shown(each, situation)]
        found = Found(situation.turn, situation.agent, sought, seen, micros, whose, least)
        found = found._replace(is_empty=told.is_empty)
        return (searched_fact(found, situation.texts, situation.received),)

    (fact,) = await situation.in_run(key, effect)
    if expect(RetrievalSearched, fact).reader not in ("", reader):
        (fact,) = await situation.in_run(f"{key}/{reader}", effect)
    return expect(RetrievalSearched, fact)


def _may_be_shown(result: object, situation: Situation) -> bool:
    """Whether the reader may see a result: not every adapter heeds who is looking."""
    seen = getattr(result, "visibility", PUBLIC)
    return admits(seen, situation.reader, situation.now)


async def gather_once(key: str, chosen: Chosen, situation: Situation) -> ContextGathered:
    """What a provider gave for this turn, or its fallback.

    Raises:
        ContextUnavailable: neither gave a slice.
    """
    request = situation.request
    if request is None:
        raise ContextUnavailable(
            "Providers cannot be asked here. Give the situation a `request` for them."
        )

    async def effect() -> Sequence[Fact]:
        try:
            gathered = await gather(chosen, request, witnessed=situation.witnessed)
        except ContextUnavailable as error:
            if not error.failures:
                raise
            return cast(tuple[Fact, ...], error.failures)
        written = situation.masked if gathered.is_own else situation.received
        fact = gathered_fact(gathered, situation.texts, written)
        return (*gathered.failures, fact)

    facts = await situation.in_turn(key, effect)
    if isinstance(facts[-1], ProviderFailed):
        failed = facts[-1]
        raise ContextUnavailable(f"{failed.provider}: {failed.error}: {failed.message}", facts)
    return expect(ContextGathered, facts[-1])

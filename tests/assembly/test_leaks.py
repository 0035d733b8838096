"""Whoever reads, through whatever: nothing is shown of what the reader may not see."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.assembly.situations import Library, Run
from tests.board.strategies import instants, names, readers, visibilities
from turnloom.assembly.logic.labels import together
from turnloom.assembly.service import assemble
from turnloom.assembly.spec import Document, RagCollection, RetrievalResult
from turnloom.assembly.spec.retrieval import RetrievalResults
from turnloom.assembly.spec.sources import from_retrieval
from turnloom.board.logic.matching import may_see
from turnloom.board.spec import Reader, Visibility, is_shared


async def shown(run: Run, reader: Reader, now: datetime) -> tuple[RetrievalResult, ...]:
    """What a reader is shown in a run of what there is."""

    async def search(collection: type[RagCollection], *sought: Any) -> RetrievalResults:
        return await run.search.search(*sought, reader, now)

    here = replace(run.next(), reader=reader, now=now, search=search)
    assembled = await assemble([from_retrieval(Library, "red fish", 20, 0.0)], here)
    return assembled.context.retrieval_results


@given(
    st.lists(st.tuples(names, visibilities), max_size=5),
    names,
    st.lists(readers, min_size=1, max_size=3),
    instants(),
)
async def test_no_reader_of_a_run_is_shown_what_is_kept_from_it(
    kept: list[tuple[str, Visibility]], tenant: str, looking: list[Reader], now: datetime
) -> None:
    run = Run()
    for n, (whose, each) in enumerate(kept):
        await run.search.add([Document(str(n), f"red fish canary{n}", visibility=each)], whose)
    for reader in (Reader(each.agent, each.labels, tenant) for each in looking):
        found = await shown(run, reader, now)
        seen = {
            str(n)
            for n, (whose, each) in enumerate(kept)
            if (whose == tenant or is_shared(each)) and may_see(each, reader, now)
        }
        assert {each.source_id for each in found} == seen
        assert all(may_see(each, reader, now) for each in together(e.visibility for e in found))


@given(st.lists(visibilities, max_size=4), readers, instants())
def test_all_of_an_audience_admit_exactly_who_may_see_everything(
    given: list[Visibility], reader: Reader, now: datetime
) -> None:
    admitted = all(may_see(each, reader, now) for each in together(given))
    assert admitted == all(may_see(each, reader, now) for each in given)

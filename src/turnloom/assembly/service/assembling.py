"""Assembly of a turn's context from its sources."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, NamedTuple, cast

import anyio
import msgspec

from turnloom.assembly.events import (
    ContextGathered,
    HistorySummarised,
    ProviderFailed,
    RetrievalSearched,
    Span,
)
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.logic.checking import as_sources
from turnloom.assembly.logic.composing import PieceWriter, SegmentDraft, compose
from turnloom.assembly.logic.descriptions import origin_of
from turnloom.assembly.logic.drafts import (
    artifact_draft,
    blank_draft,
    history_draft,
    literal_draft,
    outside_of,
    read_sought,
    read_state,
    retrieval_draft,
    span_of,
    state_draft,
    summary_of,
    variable_draft,
    window_of,
)
from turnloom.assembly.logic.frames import counter_name, input_texts, item_texts, left_out
from turnloom.assembly.logic.labels import together
from turnloom.assembly.logic.retrieval import (
    Estimate,
    SearchQuery,
    SearchResult,
    admits,
    known_as,
    results_of,
    searched_fact,
)
from turnloom.assembly.logic.slices import gathered_fact, with_payload
from turnloom.assembly.ports import TokenCounter
from turnloom.assembly.service.gathering import gather
from turnloom.assembly.service.providers import text_from
from turnloom.assembly.service.situations import Situation, expect
from turnloom.assembly.spec import ChosenProvider
from turnloom.assembly.spec.formats import PLAIN, Budget, ContextFormat
from turnloom.assembly.spec.providers import Message, Piece
from turnloom.assembly.spec.retrieval import RetrievalResults
from turnloom.assembly.spec.segments import HistorySummary
from turnloom.assembly.spec.sources import (
    HistorySource,
    LiteralSource,
    ProviderSource,
    RetrievalSource,
    Source,
    StateSource,
    Summarise,
    VariableSource,
)
from turnloom.board.spec import Public
from turnloom.errors import ContextUnavailable
from turnloom.kernel.digests import digest
from turnloom.kernel.values import error_text, writable
from turnloom.log.spec import Fact
from turnloom.variables.logic.exposure import show_value


class EarlierMessages(NamedTuple):
    """The messages before a window, and their summary, if any."""

    span: Span
    summary: HistorySummary | None = None


def extend(
    past: EarlierMessages | None, messages: Sequence[Message], outside: int
) -> EarlierMessages:
    """Extend the earlier messages up to a window, without reading known ones again."""
    if past is None or past.span.count > outside:
        return EarlierMessages(span_of(messages[:outside]))
    if past.span.count == outside:
        return past
    return EarlierMessages(span_of(messages[past.span.count : outside], past.span))


async def summarise_once(
    past: EarlierMessages,
    summarise: Summarise,
    messages: Sequence[Message],
    key: str,
    situation: Situation,
) -> EarlierMessages:
    """Add the summary; the same messages are summarised once per run.

    Raises:
        ContextUnavailable: the function fails, or returns no text.
    """
    span = past.span

    async def effect() -> Sequence[Fact]:
        text = situation.masked(await _summarised(summarise, messages[: span.count], key))
        seen = together(each.visibility for each in messages[: span.count])
        about = span.first, span.last, span.count, span.digest
        return (HistorySummarised(situation.turn, situation.agent, *about, text, seen),)

    (fact,) = await situation.in_run(f"{key}/{span.digest}", effect)
    return past._replace(summary=summary_of(expect(HistorySummarised, fact)))


async def _summarised(summarise: Summarise, messages: Sequence[Message], key: str) -> str:
    what = f"`summarise` of {key}"
    try:
        return await text_from(summarise, messages, what)
    except ContextUnavailable:
        raise
    except Exception as error:
        raise ContextUnavailable(
            f"{what} raised {type(error).__name__}: {error_text(error)}. Correct it."
        ) from error


PUBLIC = Public()


async def search_all(
    sought: Mapping[str, SearchQuery], situation: Situation
) -> dict[str, RetrievalSearched]:
    """Run searches concurrently and return their results by key.

    Raises:
        Exception: the error of the first search that fails; the others are cancelled.
    """
    found: dict[str, RetrievalSearched] = {}
    failed: list[Exception] = []

    async def search(key: str, each: SearchQuery) -> None:
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


async def _search_once(key: str, sought: SearchQuery, situation: Situation) -> RetrievalSearched:
    """The result of a search for the reader: a recorded one, unless it was for another reader and
    may differ."""
    reader = known_as(situation.reader)

    async def effect() -> Sequence[Fact]:
        begun = anyio.current_time()
        # Twice as many, with any score, so that omitted results are recorded with their scores.
        wanted = sought._replace(top_k=2 * sought.top_k, min_relevance=0.0)
        results = await situation.search(*wanted)
        micros = round((anyio.current_time() - begun) * 1_000_000)
        searched = results if isinstance(results, RetrievalResults) else RetrievalResults(results)
        only_for = "" if searched.for_all else reader
        least = searched.min_relevance if sought.min_relevance is None else sought.min_relevance
        seen = [each for each in results if _may_be_shown(each, situation)]
        found = SearchResult(
            situation.turn,
            situation.agent,
            sought,
            seen,
            micros=micros,
            reader=only_for,
            min_relevance=least,
        )
        found = found._replace(is_empty=searched.is_empty)
        return (searched_fact(found, situation.texts, situation.received),)

    (fact,) = await situation.in_run(key, effect)
    if expect(RetrievalSearched, fact).reader not in ("", reader):
        (fact,) = await situation.in_run(f"{key}/{reader}", effect)
    return expect(RetrievalSearched, fact)


def _may_be_shown(result: object, situation: Situation) -> bool:
    """Whether the reader may see a result: not every adapter checks the reader."""
    seen = getattr(result, "visibility", PUBLIC)
    return admits(seen, situation.reader, situation.now)


async def gather_once(key: str, chosen: ChosenProvider, situation: Situation) -> ContextGathered:
    """The slice of a provider, or of its fallback, for this turn.

    Raises:
        ContextUnavailable: neither returned a slice.
    """
    request = situation.request
    if request is None:
        raise ContextUnavailable(
            "Providers cannot be called here. Pass `request` to the situation."
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


# Maximum number of cached counts.
MOST = 10_000


class TokenCounts:
    """Token counts, cached by the digests of texts."""

    def __init__(self, counter: TokenCounter, most: int = MOST) -> None:
        self.name = counter_name(counter.name, counter.version)
        self._counter = counter
        self._most = most
        self._counts: OrderedDict[str, int] = OrderedDict()

    def __call__(self, text: str, key: str = "") -> int:
        """The tokens of a text; `key` is its digest, if known."""
        key = key or digest(text)
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = self._counter.count(text)
            if len(self._counts) > self._most:
                self._counts.popitem(last=False)
        return count


class AssemblyResult(NamedTuple):
    """The context of a turn, its pieces for the frame, the slices of its providers, and the token
    counter."""

    context: AssembledContext
    pieces: tuple[Piece, ...]
    gathered: tuple[ContextGathered, ...]
    counter: str


async def assemble(
    sources: Sequence[Source],
    situation: Situation,
    budget: Budget | None = None,
    format: ContextFormat = PLAIN,
    counter: TokenCounter | None = None,
) -> AssemblyResult:
    """Assemble the context of one turn.

    Raises:
        ContextUnavailable: a source cannot be read, or its provider failed.
        ContextTooLarge: the guaranteed tokens exceed the budget.
        CollectionUnavailable: a collection failed or timed out.
    """
    return await Assembler(sources, counter or Estimate(), budget, format).assemble(situation)


class Assembler:
    """Assembles the context of an agent's turns in one run, and reuses unchanged parts."""

    def __init__(
        self,
        sources: Sequence[Source],
        counter: TokenCounter,
        budget: Budget | None = None,
        format: ContextFormat = PLAIN,
    ) -> None:
        self._sources = [(origin_of(n, each), each) for n, each in enumerate(as_sources(sources))]
        self._budget = budget
        self._counts = TokenCounts(counter)
        self._writer = PieceWriter(format, self._counts)
        # The last input of each source, and its draft.
        self._made: dict[str, tuple[Any, SegmentDraft]] = {}
        self._searches = _Searches()
        self._pasts: dict[str, EarlierMessages] = {}
        self._last: tuple[list[SegmentDraft], AssemblyResult] | None = None

    async def assemble(self, situation: Situation) -> AssemblyResult:
        """Assemble the context of the agent's next turn.

        Raises:
            ContextUnavailable: a source cannot be read, or its provider failed.
            ContextTooLarge: the guaranteed tokens exceed the budget.
            CollectionUnavailable: a collection failed or timed out.
        """
        await self._searches.make(self._sources, situation)
        gathered: list[ContextGathered] = []
        drafts: list[SegmentDraft] = []
        for place, (origin, source) in enumerate(self._sources):
            if isinstance(source, ProviderSource):
                fact = await gather_once(provider_key(place), source.chosen, situation)
                gathered.append(fact)
                drafts.append(self._provided(source, origin, fact, situation))
                situation = _leaving(situation, fact)
            elif isinstance(source, HistorySource):
                drafts.append(await self._said(source, origin, situation))
            else:
                drafts.append(self._read(source, origin, situation))
        return self._composed(drafts, tuple(gathered))

    def _read(
        self,
        source: StateSource | RetrievalSource | LiteralSource | VariableSource,
        origin: str,
        situation: Situation,
    ) -> SegmentDraft:
        """The draft of a source that needs no further calls."""
        match source:
            case LiteralSource():
                return self._draft(origin, None, lambda _: literal_draft(source, origin))
            case StateSource():
                text = read_state(source, origin, situation.state)
                received = situation.received
                return self._draft(
                    origin, text, lambda it: state_draft(source, origin, received(writable(it)))
                )
            case VariableSource(names=names):
                shown = tuple(show_value(name, situation.values, "null") for name in names)
                return self._draft(origin, shown, lambda it: variable_draft(source, origin, it))
            case RetrievalSource():
                return self._retrieved(source, origin, situation)

    def _retrieved(
        self, source: RetrievalSource, origin: str, situation: Situation
    ) -> SegmentDraft:
        fact = self._searches.found(origin)
        if fact is None:
            return self._draft(origin, None, lambda _: blank_draft(source, origin))
        texts = situation.texts
        return self._draft(
            origin,
            fact,
            lambda it: retrieval_draft(source, origin, it, results_of(it, texts)),
        )

    def _provided(
        self, source: ProviderSource, origin: str, fact: ContextGathered, situation: Situation
    ) -> SegmentDraft:
        # A text is recorded once; compare digests.
        items = [msgspec.structs.replace(each, text=None) for each in fact.items]
        known = items, left_out(fact)
        return self._draft(
            origin,
            known,
            lambda _: artifact_draft(source, origin, fact, item_texts(fact, situation.texts)),
        )

    async def _said(self, source: HistorySource, origin: str, situation: Situation) -> SegmentDraft:
        """The draft of the messages in a source's window, and a summary of the rest."""
        messages = situation.history
        window = window_of(source, messages, self._counts)
        if not window.outside:
            past = None
        else:
            past = extend(self._pasts.get(origin), messages, window.outside)
            if source.summarise is not None and past.summary is None:
                key = f"summary/{situation.agent}/{origin}"
                past = await summarise_once(
                    past, source.summarise, messages, key, situation=situation
                )
            self._pasts[origin] = past
        shown = tuple(messages[window.outside :])

        def make(_: object) -> SegmentDraft:
            if past is None:
                return history_draft(source, origin, shown, None, withheld=())
            withheld = outside_of(origin, past.span, window.reason, past.summary is not None)
            return history_draft(source, origin, shown, past.summary, withheld=(withheld,))

        return self._draft(origin, (shown, past), make)

    def _draft(self, origin: str, of: Any, make: Callable[[Any], SegmentDraft]) -> SegmentDraft:
        """The cached draft if its input is unchanged, otherwise a new one."""
        known = self._made.get(origin)
        if known is not None and known[0] == of:
            return known[1]
        made = make(of)
        self._made[origin] = of, made
        return made

    def _composed(
        self, drafts: list[SegmentDraft], gathered: tuple[ContextGathered, ...]
    ) -> AssemblyResult:
        """The cached context if the drafts are unchanged, otherwise a new one."""
        if self._last is None or not all(map(is_, drafts, self._last[0])):
            composed = compose(drafts, self._budget, self._writer)
            self._last = drafts, AssemblyResult(*composed, gathered, self._counts.name)
        made = self._last[1]
        return made._replace(gathered=gathered) if made.gathered != gathered else made


def provider_key(place: int) -> str:
    """The key of a provider's slice in its turn, by the index of the source."""
    return f"context/{place}"


def _leaving(situation: Situation, fact: ContextGathered) -> Situation:
    """The situation for the next provider, which receives the inputs as this one left them."""
    request = situation.request
    if request is None or fact.inputs is None:
        return situation
    shown = zip(request.inputs, input_texts(fact, situation.texts), strict=True)
    inputs = tuple(
        with_payload(artifact, situation.opened(msgspec.json.decode(text)["payload"]))
        for artifact, text in shown
    )
    return replace(situation, request=replace(request, inputs=inputs))


class _Searches:
    """The searches of sources in this run."""

    def __init__(self) -> None:
        self._facts: dict[str, RetrievalSearched] = {}
        # The search key of each source; None if its query is blank.
        self._keys: dict[str, str | None] = {}

    async def make(self, sources: Sequence[tuple[str, Source]], situation: Situation) -> None:
        """Run the new searches of sources concurrently."""
        missing: dict[str, SearchQuery] = {}
        for origin, source in sources:
            if isinstance(source, RetrievalSource):
                sought = read_sought(source, origin, situation.state, situation.values)
                # Compare keys, not values: in Python, True equals 1.
                key = self._keys[origin] = None if sought is None else sought.key
                if sought is not None and key is not None and key not in self._facts:
                    missing[key] = sought
        if missing:
            self._facts |= await search_all(missing, situation)

    def found(self, origin: str) -> RetrievalSearched | None:
        """The result for a source; None if its query is blank."""
        key = self._keys[origin]
        return None if key is None else self._facts[key]

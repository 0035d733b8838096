"""The built-in context providers. They nest."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from inspect import iscoroutinefunction
from itertools import islice
from typing import Any, Literal, TypeVar, cast

from turnloom.assembly.logic.redaction import RedactionRule, Transform, redact, rule
from turnloom.assembly.logic.slices import Settled, SliceItem, described, with_payload
from turnloom.assembly.service.trail import ask, traced
from turnloom.assembly.spec import ContextProvider, ContextRequest, ContextSlice, Message
from turnloom.assembly.spec.providers import check_provider
from turnloom.board.spec import Artifact, FilterConfig
from turnloom.errors import ContextUnavailable, UsageError
from turnloom.kernel.contained import called
from turnloom.kernel.digests import digest
from turnloom.kernel.values import Json, as_array, as_object, is_text
from turnloom.variables.logic.types import apart


class CompositeProvider:
    """Gives what its providers give, one after the other; of each artifact the first item.

    What one of them shows of the inputs is what the next one is given of them.
    """

    stateless = True

    def __init__(self, *providers: ContextProvider) -> None:
        if not providers:
            raise UsageError("CompositeProvider() has nobody to ask. Give it providers.")
        for number, each in enumerate(providers, 1):
            check_provider(each, f"Provider {number} of CompositeProvider")
        self._providers = providers
        self.declared: Mapping[str, object] = {"providers": providers}

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        return await compose([partial(ask, each) for each in self._providers], request)


async def compose(
    asks: Iterable[Callable[[ContextRequest], Awaitable[Settled]]], request: ContextRequest
) -> ContextSlice:
    """What is given for a request, one after the other; of each artifact the first item."""
    items: list[SliceItem] = []
    metadata: dict[str, Any] = {}
    inputs: list[dict[str, Any]] | None = None
    for asked in asks:
        given = await asked(request)
        items += given.items
        metadata = {**given.metadata, **metadata}
        if given.inputs is not None:
            inputs = given.inputs
            shown = zip(request.inputs, inputs, strict=True)
            left = tuple(with_payload(artifact, each["payload"]) for artifact, each in shown)
            request = replace(request, inputs=left)
    return ContextSlice([*_once(items)], metadata, inputs)


def _once(items: Iterable[SliceItem]) -> Iterator[SliceItem]:
    """The items without those of an artifact that came before."""
    seen: set[str] = set()
    for each in items:
        if each.artifact not in seen:
            yield each
        if each.artifact:
            seen.add(each.artifact)


def check_count(count: object, what: str) -> None:
    """See that something can say how many are wanted.

    Raises:
        UsageError: it is less than one, or no whole number.
    """
    if count is not None and (type(count) is not int or count < 1):
        raise UsageError(f"`{what}` is {count!r}. Give 1 or more, or leave it out for all.")


# How many artifacts a provider reads at most.
MOST_READ = 100_000


async def read(request: ContextRequest, filter: FilterConfig) -> list[Artifact]:
    """What the filter asks for, without the inputs of the turn; its limit counts the others.

    Raises:
        UsageError: it finds more than a provider may read.
    """
    inputs = {each.id for each in request.inputs}
    limit = filter.limit
    if limit is not None:
        filter = filter.model_copy(update={"limit": limit + len(inputs)})
    found: list[Artifact] = []
    async for each in request.board.iter_artifacts(filter):
        if each.id not in inputs:
            found.append(each)
        if len(found) > MOST_READ:
            raise UsageError(
                f"The filter finds more than {MOST_READ:,} artifacts. Give it a `limit`."
            )
    return found[:limit]


async def read_last(request: ContextRequest, filter: FilterConfig) -> list[Artifact]:
    """The same with the last ones where there is a limit, oldest first."""
    newest = await read(request, filter.model_copy(update={"order": "-created_at"}))
    return newest[::-1]


class DefaultCorrelationProvider:
    """Gives what has the correlation id of the run or of one of the inputs, oldest first; with a
    limit the last ones."""

    stateless = True

    def __init__(self, limit: int | None = None) -> None:
        check_count(limit, "limit")
        self._limit = limit
        self.declared: Mapping[str, object] = {} if limit is None else {"limit": limit}

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        found, _ = await self.find(request)
        return ContextSlice([described(each) for each in found])

    async def find(self, request: ContextRequest) -> tuple[list[Artifact], bool]:
        """The artifacts that it shows for this request, each as it is, and whether the limit leaves
        older ones out."""
        ids = (request.correlation_id, *(each.correlation_id for each in request.inputs))
        found: list[Artifact] = []
        one_more = None if self._limit is None else self._limit + 1
        for id in dict.fromkeys(ids):
            if id is not None:
                newest = FilterConfig(correlation_id=id, limit=one_more, order="-created_at")
                found += (await read(request, newest))[::-1]
        found.sort(key=lambda each: each.created_at)
        if self._limit is None or len(found) <= self._limit:
            return found, False
        return found[-self._limit :], True


# Gives what stands in the place of a value.
Change = Callable[[Json], Json]

# By what an item is known: never redacted.
NAMING = ("type", "produced_by", "artifact_id")


class RedactingProvider:
    """Gives what its provider gives without the keys that are named, in the inputs too.

    A `transform(path, value)` puts something in the place of each value; so do the functions of a
    mapping from keys to what takes their values.
    """

    stateless = True

    def __init__(
        self,
        inner: ContextProvider,
        keys: Iterable[str] = (),
        transform: Transform | Mapping[str, Change] | None = None,
    ) -> None:
        check_provider(inner, "The provider inside RedactingProvider")
        keys = keys if isinstance(keys, str) else tuple(keys)
        self._inner = inner
        self._rules = _rules(keys, transform)
        changes = {} if transform is None else {"transform": transform}
        self.declared: Mapping[str, object] = {"inner": inner, "keys": keys, **changes}

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        given = await self._given(request)
        whole = given.inputs
        if whole is None:
            whole = [described(each) for each in request.inputs]
        metadata, _ = redact(given.metadata, self._rules)
        inputs = [self._redacted(each)[0] for each in whole]
        return ContextSlice([self._shown(each) for each in given.items], metadata, inputs or None)

    async def _given(self, request: ContextRequest) -> Settled:
        """What is inside. What others say of their errors may tell what is redacted here."""
        try:
            return await ask(self._inner, request)
        except ContextUnavailable:
            raise
        except Exception as error:
            raise ContextUnavailable(
                f"The provider inside RedactingProvider raised {type(error).__name__!r}, which is "
                "not quoted here. Ask that provider alone to see what it says."
            ) from error

    def _shown(self, item: SliceItem) -> SliceItem:
        if "payload" not in item:
            return item.with_content(*redact(item, self._rules))
        if as_object(item["payload"]) is None:
            raise ContextUnavailable(
                "RedactingProvider finds no keys in a payload that is no object. Put what makes "
                "texts around it: SummaryProvider(RedactingProvider(…), …)."
            )
        return item.with_content(*self._redacted(item))

    def _redacted(self, item: Mapping[str, Json]) -> tuple[dict[str, Json], tuple[str, ...]]:
        """What an item with a payload shows: keys go from the payload down, and are looked for
        beside it as well."""
        payload, gone = redact(item["payload"], self._rules)
        named = {key: value for key, value in item.items() if key in NAMING}
        others = {key: value for key, value in item.items() if key not in (*NAMING, "payload")}
        beside, more = redact(others, self._rules)
        return {**named, **(as_object(beside) or {}), "payload": payload}, (*gone, *more)


def _rules(keys: Iterable[str], transform: object) -> list[RedactionRule]:
    """The rules of the keys, those with functions of their own first."""
    if isinstance(keys, str):
        raise UsageError(f"`keys` is {keys!r}. Give several, as in [{keys!r}].")
    if isinstance(transform, Mapping):
        own = cast(Mapping[str, Any], transform)
        rules = [*(rule(key, _of(change)) for key, change in own.items()), *map(rule, keys)]
    else:
        whole = None if transform is None else _checked(transform)
        rules = [rule(key, whole) for key in keys]
    if not rules:
        raise UsageError("RedactingProvider has nothing to redact. Name `keys`.")
    return rules


def _of(change: Any) -> Transform:
    checked = _checked(change)
    return lambda path, value: checked(value)


def _checked(function: Any) -> Callable[..., Json]:
    if not callable(function) or iscoroutinefunction(function):
        raise UsageError(f"{function!r} cannot transform values. Give a plain function.")
    return function


class StateDelegatingProvider:
    """Gives the items or the slice that a component left under a key of the turn's state."""

    stateless = True

    def __init__(self, key: str = "context_snapshot") -> None:
        if not key:
            raise UsageError("`key` is empty. Name the key of `ctx.state` that has the items.")
        self._key = key
        self.declared: Mapping[str, object] = {"key": key}

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        left = from_state(request, self._key)
        given = left if isinstance(left, ContextSlice) else _listed(left, self._key)
        # What was read before counts as given out only when it is read in this call as well.
        for each in given.items:
            id = (as_object(each) or {}).get("artifact_id")
            if isinstance(id, str):
                await request.board.get(id)
        return given


def from_state(request: ContextRequest, key: str) -> Any:
    """The value that a component left under a key.

    Raises:
        ContextUnavailable: there is none.
    """
    try:
        return request.ctx.state[key]
    except KeyError:
        raise ContextUnavailable(
            f"`ctx.state` has no {key!r}. Let a component put it there before the turn gathers its "
            "context, an empty list perhaps."
        ) from None


def _listed(left: object, key: str) -> ContextSlice:
    items = as_array(left)
    if items is None:
        raise ContextUnavailable(
            f"`ctx.state[{key!r}]` is a {type(left).__name__!r}. "
            "Put a list of items or a ContextSlice there."
        )
    return ContextSlice([*cast(list[dict[str, Any]], items)])


ORDERS = ("created_at", "-created_at")


class FilteredContextProvider:
    """Gives the artifacts that a filter asks for, and behind them values of the turn's state.

    With an order, here or in the filter, they come as the board gives them; without one, a limit
    means the last ones, oldest first.
    """

    stateless = True

    def __init__(
        self,
        filter: FilterConfig | None = None,
        limit: int | None = None,
        order: Literal["created_at", "-created_at"] | None = None,
        include_state_keys: Iterable[str] | None = None,
    ) -> None:
        filter = FilterConfig() if filter is None else filter
        check_count(limit, "limit")
        _check_filter(filter, order)
        said = {"limit": limit, "order": order}
        said = {name: value for name, value in said.items() if value is not None}
        self._filter = filter.model_copy(update=said)
        self._read = read if order or "order" in filter.model_fields_set else read_last
        self._keys = _state_keys(include_state_keys)
        asked = self._filter.model_dump(exclude_defaults=True)
        shared = {"include_state_keys": sorted(self._keys)} if self._keys else {}
        self.declared: Mapping[str, object] = {**asked, **shared}

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        found = await self._read(request, self._filter)
        state = [{"type": "state", "payload": {k: from_state(request, k)}} for k in self._keys]
        return ContextSlice([*map(described, found), *state])


def _check_filter(filter: object, order: object) -> None:
    if not isinstance(filter, FilterConfig):
        raise UsageError(f"`filter` is {filter!r}. Give a FilterConfig(…).")
    if order is not None and order not in ORDERS:
        raise UsageError(f"`order` is {order!r}. Give {ORDERS[0]!r} or {ORDERS[1]!r}.")


def _state_keys(keys: Iterable[str] | None) -> list[str]:
    """The keys in an order that is always the same."""
    if isinstance(keys, str):
        raise UsageError(f"`include_state_keys` is {keys!r}. Give a set, as in {{{keys!r}}}.")
    return sorted(keys or ())


class TranscriptProvider:
    """Gives the conversation as the agent may see it: all of it, or the last messages, of all or of
    the agents that are named."""

    stateless = True

    def __init__(self, last: int | None = None, agents: Iterable[str] | None = None) -> None:
        check_count(last, "last")
        if isinstance(agents, str):
            raise UsageError(f"`agents` is {agents!r}. Give a set, as in {{{agents!r}}}.")
        self._last = last
        said = {"last": last, "agents": None if agents is None else sorted(agents)}
        self.declared: Mapping[str, object] = {
            name: value for name, value in said.items() if value is not None
        }
        self._agents = None if agents is None else frozenset(agents)
        if self._agents is not None and not self._agents:
            raise UsageError("`agents` names nobody. Name some, or leave it out for all.")

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        said = (each for each in reversed(request.ctx.run.transcript) if self._wants(each))
        return ContextSlice([_item(each) for each in [*islice(said, self._last)][::-1]])

    def _wants(self, message: Message) -> bool:
        return self._agents is None or message.author in self._agents


def _item(message: Message) -> dict[str, Any]:
    payload = {"author": message.author, "text": message.text}
    return {"type": "message", "payload": payload, "produced_by": message.author}


T = TypeVar("T")


async def text_from(call: Callable[[T], str | Awaitable[str]], given: T, what: str) -> str:
    """The text that a function makes of something; a plain function is called in a thread.

    Raises:
        ContextUnavailable: it gives something else.
    """
    text = await called(call, given)
    if not is_text(text):
        raise ContextUnavailable(f"{what} gave a {type(text).__name__!r}. Let it give a text.")
    return str(text)


# Gives the text of an item.
Summarise = Callable[[dict[str, Json]], str | Awaitable[str]]

# How many texts are kept.
MOST = 1_000


class SummaryProvider:
    """Gives the items of its provider with a text in the place of each payload.

    A text is made once for each artifact and content; a plain function is called in a thread.
    """

    stateless = True

    def __init__(self, inner: ContextProvider, summarise: Summarise) -> None:
        check_provider(inner, "The provider inside SummaryProvider")
        if not callable(summarise):
            raise UsageError(f"`summarise` is {summarise!r}. Give what makes a text of an item.")
        self._inner = inner
        self._summarise = summarise
        self.declared: Mapping[str, object] = {"inner": inner, "summarise": summarise}
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        given = await ask(self._inner, request)
        items = [each.with_payload(await self._text(each)) for each in given.items]
        return ContextSlice([*items], given.metadata, given.inputs)

    async def _text(self, item: SliceItem) -> str:
        key = item.artifact, digest(item.text)
        if key not in self._texts:
            what = "`summarise` of SummaryProvider"
            self._texts[key] = await text_from(self._summarise, apart(item), what)
            while len(self._texts) > MOST:
                self._texts.popitem(last=False)
        self._texts.move_to_end(key)
        return self._texts[key]

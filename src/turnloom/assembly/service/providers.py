"""The built-in context providers, which can be nested."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import iscoroutinefunction
from itertools import islice
from operator import attrgetter
from typing import Any, Literal, TypeVar, cast

from turnloom.assembly.logic.redaction import RedactionRule, Transform, redact, rule
from turnloom.assembly.logic.slices import CheckedSlice, SliceItem, described, with_payload
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
    """Combines the slices of its providers in order; the first item of each artifact counts.

    Each provider receives the inputs as the previous one left them.
    """

    stateless = True

    def __init__(self, *providers: ContextProvider) -> None:
        if not providers:
            raise UsageError("CompositeProvider() needs at least one provider.")
        for number, each in enumerate(providers, 1):
            check_provider(each, f"Provider {number} of CompositeProvider")
        self._providers = providers
        self.declared: Mapping[str, object] = {"providers": providers}

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Return the slice for this request."""
        return await compose([partial(ask, each) for each in self._providers], request)


async def compose(
    asks: Iterable[Callable[[ContextRequest], Awaitable[CheckedSlice]]], request: ContextRequest
) -> ContextSlice:
    """Combine slices in order; the first item of each artifact counts."""
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
    """The items without duplicates of an artifact."""
    seen: set[str] = set()
    for each in items:
        if each.artifact not in seen:
            yield each
        if each.artifact:
            seen.add(each.artifact)


def check_count(count: object, what: str) -> None:
    """Check an optional positive integer.

    Raises:
        UsageError: it is not an integer, or less than 1.
    """
    if count is not None and (type(count) is not int or count < 1):
        raise UsageError(
            f"`{what}` must be an integer of at least 1, not {count!r}. Omit it for all."
        )


# Maximum artifacts that a provider reads.
MOST_READ = 100_000


async def read(request: ContextRequest, filter: FilterConfig) -> list[Artifact]:
    """The artifacts that match a filter, without the inputs of the turn, which do not count toward
    its limit.

    Raises:
        UsageError: there are more than a provider may read.
    """
    limit = filter.limit
    if limit is not None:
        filter = filter.model_copy(update={"limit": limit + len(request.inputs)})
    return (await _read_others(request, filter))[:limit]


async def _read_others(request: ContextRequest, filter: FilterConfig) -> list[Artifact]:
    """The artifacts that match a filter, page by page, without the inputs of the turn."""
    inputs, found = {each.id for each in request.inputs}, list[Artifact]()
    read, cursor = 0, None
    while True:
        items, _ = await request.board.query_artifacts(filter, cursor=cursor)
        found += [each for each in items if each.id not in inputs]
        read, cursor = read + len(items), items.cursor
        if cursor is None or (filter.limit is not None and read >= filter.limit):
            return found
        _check_read(found)


def _check_read(found: Sequence[Artifact]) -> None:
    """Refuse to read on.

    Raises:
        UsageError: there are more than a provider may read.
    """
    if len(found) > MOST_READ:
        raise UsageError(f"The filter finds more than {MOST_READ:,} artifacts. Give it a `limit`.")


async def read_last(request: ContextRequest, filter: FilterConfig) -> list[Artifact]:
    """The last matching artifacts if there is a limit, oldest first."""
    newest = await read(request, filter.model_copy(update={"order": "-created_at"}))
    return newest[::-1]


# Returns the newest artifacts of a correlation without the inputs of the turn, newest first, at
# least as many as asked for, if there are so many.
ReadNewest = Callable[[str, int], Awaitable[Sequence[Artifact]]]


def newest_for(request: ContextRequest) -> ReadNewest:
    """The newest artifacts on the board of a request."""

    async def read_newest(correlation: str, most: int) -> Sequence[Artifact]:
        limit = most + len(request.inputs)
        newest = FilterConfig(correlation_id=correlation, limit=limit, order="-created_at")
        return await _read_others(request, newest)

    return read_newest


class DefaultCorrelationProvider:
    """Provides the artifacts with the correlation id of the run or of an input, oldest first; with
    a limit, the last ones."""

    stateless = True

    def __init__(self, limit: int | None = None) -> None:
        check_count(limit, "limit")
        self._limit = limit
        self.declared: Mapping[str, object] = {} if limit is None else {"limit": limit}

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Return the slice for this request."""
        found, _ = await self.find(request.correlation_id, request.inputs, newest_for(request))
        return ContextSlice([described(each) for each in found])

    async def find(
        self, correlation: str | None, inputs: Sequence[Artifact], read_newest: ReadNewest
    ) -> tuple[list[Artifact], bool]:
        """The artifacts for a turn with these inputs, and whether the limit dropped older ones."""
        found: list[Artifact] = []
        most = (self._limit or MOST_READ) + 1
        for id in dict.fromkeys([correlation, *[each.correlation_id for each in inputs]]):
            if id is not None:
                found += (await read_newest(id, most))[::-1]
        if self._limit is None:
            _check_read(found)
        found = sorted({each.id: each for each in found}.values(), key=_created)
        if self._limit is None or len(found) <= self._limit:
            return found, False
        return found[-self._limit :], True


_created = attrgetter("created_at")


# Returns the replacement of a value.
Change = Callable[[Json], Json]

# The keys that identify an item: never redacted.
NAMING = ("type", "produced_by", "artifact_id")


class RedactingProvider:
    """Removes the given keys from the slice of its provider, and from the inputs.

    A `transform(path, value)` replaces each value instead; so does a mapping of keys to functions
    of the value.
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
        """Return the slice for this request."""
        given = await self._given(request)
        whole = given.inputs
        if whole is None:
            whole = [described(each) for each in request.inputs]
        metadata, _ = redact(given.metadata, self._rules)
        inputs = [self._redacted(each)[0] for each in whole]
        return ContextSlice([self._shown(each) for each in given.items], metadata, inputs or None)

    async def _given(self, request: ContextRequest) -> CheckedSlice:
        """The inner slice. Errors are not quoted: their messages may contain redacted values."""
        try:
            return await ask(self._inner, request)
        except ContextUnavailable:
            raise
        except Exception as error:
            raise ContextUnavailable(
                f"The provider inside RedactingProvider raised {type(error).__name__!r}, whose "
                "message may contain secrets. Call that provider alone to see it."
            ) from error

    def _shown(self, item: SliceItem) -> SliceItem:
        if "payload" not in item:
            return item.with_content(*redact(item, self._rules))
        if as_object(item["payload"]) is None:
            raise ContextUnavailable(
                "RedactingProvider cannot redact a payload that is not an object. Swap the "
                "providers: SummaryProvider(RedactingProvider(…), …)."
            )
        return item.with_content(*self._redacted(item))

    def _redacted(self, item: Mapping[str, Json]) -> tuple[dict[str, Json], tuple[str, ...]]:
        """An item with redacted payload; keys apply from the payload down, and to the other
        fields."""
        payload, gone = redact(item["payload"], self._rules)
        named = {key: value for key, value in item.items() if key in NAMING}
        others = {key: value for key, value in item.items() if key not in (*NAMING, "payload")}
        beside, more = redact(others, self._rules)
        return {**named, **(as_object(beside) or {}), "payload": payload}, (*gone, *more)


def _rules(keys: Iterable[str], transform: object) -> list[RedactionRule]:
    """The rules of the keys; those with their own functions come first."""
    if isinstance(keys, str):
        raise UsageError(f"`keys` must be a list, not {keys!r}. Write [{keys!r}].")
    if isinstance(transform, Mapping):
        own = cast(Mapping[str, Any], transform)
        rules = [*(rule(key, _of(change)) for key, change in own.items()), *map(rule, keys)]
    else:
        whole = None if transform is None else _checked(transform)
        rules = [rule(key, whole) for key in keys]
    if not rules:
        raise UsageError("RedactingProvider has nothing to redact. Pass `keys`.")
    return rules


def _of(change: Any) -> Transform:
    checked = _checked(change)
    return lambda path, value: checked(value)


def _checked(function: Any) -> Callable[..., Json]:
    if not callable(function) or iscoroutinefunction(function):
        raise UsageError(f"`transform` must be a plain function, not {function!r}.")
    return function


class StateDelegatingProvider:
    """Provides the items or the slice that a component left in the turn's state."""

    stateless = True

    def __init__(self, key: str = "context_snapshot") -> None:
        if not key:
            raise UsageError("`key` is empty. Pass the key of `ctx.state` that holds the items.")
        self._key = key
        self.declared: Mapping[str, object] = {"key": key}

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Return the slice for this request."""
        left = from_state(request, self._key)
        given = left if isinstance(left, ContextSlice) else _listed(left, self._key)
        # Artifacts read earlier may be shown only if they are read in this call too.
        for each in given.items:
            id = (as_object(each) or {}).get("artifact_id")
            if isinstance(id, str):
                await request.board.get(id)
        return given


def from_state(request: ContextRequest, key: str) -> Any:
    """The value that a component left under a key.

    Raises:
        ContextUnavailable: the key is missing.
    """
    try:
        return request.ctx.state[key]
    except KeyError:
        raise ContextUnavailable(
            f"`ctx.state` has no {key!r}. Set it in a component before the turn gathers its "
            "context, if only to an empty list."
        ) from None


def _listed(left: object, key: str) -> ContextSlice:
    items = as_array(left)
    if items is None:
        raise ContextUnavailable(
            f"`ctx.state[{key!r}]` is a {type(left).__name__!r}. "
            "Set it to a list of items or a ContextSlice."
        )
    return ContextSlice([*cast(list[dict[str, Any]], items)])


ORDERS = ("created_at", "-created_at")


class FilteredContextProvider:
    """Provides the artifacts that match a filter, followed by values of the turn's state.

    With an order, here or in the filter, the artifacts come in that order; without one, a limit
    selects the last ones, oldest first.
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
        """Return the slice for this request."""
        found = await self._read(request, self._filter)
        state = [{"type": "state", "payload": {k: from_state(request, k)}} for k in self._keys]
        return ContextSlice([*map(described, found), *state])


def _check_filter(filter: object, order: object) -> None:
    if not isinstance(filter, FilterConfig):
        raise UsageError(f"`filter` must be a FilterConfig, not {filter!r}.")
    if order is not None and order not in ORDERS:
        raise UsageError(f"`order` must be {ORDERS[0]!r} or {ORDERS[1]!r}, not {order!r}.")


def _state_keys(keys: Iterable[str] | None) -> list[str]:
    """The keys in a fixed order."""
    if isinstance(keys, str):
        raise UsageError(f"`include_state_keys` must be a set, not {keys!r}. Write {{{keys!r}}}.")
    return sorted(keys or ())


class TranscriptProvider:
    """Provides the messages that the agent may see: all or the last ones, of all or of the given
    agents."""

    stateless = True

    def __init__(self, last: int | None = None, agents: Iterable[str] | None = None) -> None:
        check_count(last, "last")
        if isinstance(agents, str):
            raise UsageError(f"`agents` must be a set, not {agents!r}. Write {{{agents!r}}}.")
        self._last = last
        said = {"last": last, "agents": None if agents is None else sorted(agents)}
        self.declared: Mapping[str, object] = {
            name: value for name, value in said.items() if value is not None
        }
        self._agents = None if agents is None else frozenset(agents)
        if self._agents is not None and not self._agents:
            raise UsageError("`agents` is empty. Name at least one, or omit it for all.")

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Return the slice for this request."""
        said = (each for each in reversed(request.ctx.run.transcript) if self._wants(each))
        return ContextSlice([_item(each) for each in [*islice(said, self._last)][::-1]])

    def _wants(self, message: Message) -> bool:
        return self._agents is None or message.author in self._agents


def _item(message: Message) -> dict[str, Any]:
    payload = {"author": message.author, "text": message.text}
    return {"type": "message", "payload": payload, "produced_by": message.author}


T = TypeVar("T")


async def text_from(call: Callable[[T], str | Awaitable[str]], given: T, what: str) -> str:
    """The text that a function returns; a plain function is called in a thread.

    Raises:
        ContextUnavailable: it does not return a text.
    """
    text = await called(call, given)
    if not is_text(text):
        raise ContextUnavailable(f"{what} returned a {type(text).__name__!r}. Return a text.")
    return str(text)


# Returns the text of an item.
Summarise = Callable[[dict[str, Json]], str | Awaitable[str]]

# Maximum number of cached texts.
MOST = 1_000


class SummaryProvider:
    """Replaces each payload of its provider's items with a text.

    Texts are cached by artifact and content; a plain function is called in a thread.
    """

    stateless = True

    def __init__(self, inner: ContextProvider, summarise: Summarise) -> None:
        check_provider(inner, "The provider inside SummaryProvider")
        if not callable(summarise):
            raise UsageError(f"`summarise` must be a function of an item, not {summarise!r}.")
        self._inner = inner
        self._summarise = summarise
        self.declared: Mapping[str, object] = {"inner": inner, "summarise": summarise}
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Return the slice for this request."""
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

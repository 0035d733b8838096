"""Items without what is not to be shown."""

from collections.abc import Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Any, cast

from turnloom.assembly.logic.items import Item, described
from turnloom.assembly.logic.redaction import Rule, Transform, redact, rule
from turnloom.assembly.logic.slices import Settled
from turnloom.assembly.service.trail import ask, traced
from turnloom.assembly.spec import ContextProvider, ContextRequest, ContextSlice
from turnloom.assembly.spec.providers import check_provider
from turnloom.errors import ContextUnavailable, UsageError
from turnloom.kernel.values import Json, as_object

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

    def _shown(self, item: Item) -> Item:
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


def _rules(keys: Iterable[str], transform: object) -> list[Rule]:
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

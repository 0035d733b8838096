"""Items as texts."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from inspect import isawaitable, iscoroutinefunction
from typing import Any

from anyio import to_thread

from weft.assembly.logic.items import Item
from weft.assembly.service.trail import ask, traced
from weft.assembly.spec import ContextProvider, ContextRequest, ContextSlice
from weft.assembly.spec.providers import check_provider
from weft.errors import ContextUnavailable, UsageError
from weft.kernel.digests import digest
from weft.kernel.values import is_text
from weft.variables.logic.types import apart

# Gives the text of an item.
Summarise = Callable[[dict[str, Any]], str | Awaitable[str]]

# How many texts are kept.
MOST = 1_000


class SummaryProvider:
    """Gives the items of its provider with a text in the place of each payload.

    A text is made once for each artifact and content; a plain function is called in a thread.
    """

    def __init__(self, inner: ContextProvider, summarise: Summarise) -> None:
        check_provider(inner, "The provider inside SummaryProvider")
        if not callable(summarise):
            raise UsageError(f"`summarise` is {summarise!r}. Give what makes a text of an item.")
        self._inner = inner
        self._summarise = summarise
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        given = await ask(self._inner, request)
        items = [each.with_payload(await self._text(each)) for each in given.items]
        return ContextSlice([*items], given.metadata, given.inputs)

    async def _text(self, item: Item) -> str:
        key = item.artifact, digest(item.text)
        if key not in self._texts:
            self._texts[key] = await self._made(apart(item))
            while len(self._texts) > MOST:
                self._texts.popitem(last=False)
        self._texts.move_to_end(key)
        return self._texts[key]

    async def _made(self, item: dict[str, Any]) -> str:
        if iscoroutinefunction(self._summarise):
            text = await self._summarise(item)
        else:
            text = await to_thread.run_sync(self._summarise, item, abandon_on_cancel=True)
            text = await text if isawaitable(text) else text
        if not is_text(text):
            raise ContextUnavailable(
                f"`summarise` of SummaryProvider gave a {type(text).__name__!r}. "
                "Let it give a text."
            )
        return text
